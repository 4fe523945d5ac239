#!/bin/sh
# What our plugin runs at an event of a session that a person has started: our hook when the session is followed
# (`gt follow`), else nothing. Each call of each session pays for this, so no process is started before that is known.

leave() {
    # 3 tells the mod that this session is not ours.
    [ "$event" = Mod ] && exit 3
    exit 0
}

# The nearest settings of the project that say `follow:`; whether they count is for gt-witness to find out.
begin() {
    folder=${CLAUDE_PROJECT_DIR:-$PWD}
    while [ -n "$folder" ]; do
        if [ -f "$folder/settings/witness.yaml" ]; then
            grep -q '^follow:' "$folder/settings/witness.yaml" || return
            # This shell ends at once, so the client is told of by its number.
            gt-witness follow --at-start --pid "$PPID" < /dev/null > /dev/null 2>&1 &
            return
        fi
        folder=${folder%/*}
    done
}

event=$1
# A polecat has hooks of its own.
[ -z "$GT_WITNESS_SPOOL" ] || leave
state=${XDG_STATE_HOME:-$HOME/.local/state}/gt-witness/followed
read -r stat 2> /dev/null < "/proc/$PPID/stat" || leave
# After the name, which may hold anything: the state is the third field, the start the 22nd.
set -- ${stat##*) }
shift 19
pointer=$state/$PPID-$1
if [ ! -f "$pointer" ]; then
    [ "$event" = SessionStart ] && command -v gt-witness > /dev/null && begin
    leave
fi
{
    IFS= read -r python && IFS= read -r hooks && IFS= read -r GT_WITNESS_SPOOL &&
        IFS= read -r GT_WITNESS_QUEUE && IFS= read -r GT_WITNESS_HOOK_WAIT && IFS= read -r GT_WITNESS_BAND
} < "$pointer" || leave
export GT_WITNESS_SPOOL GT_WITNESS_QUEUE GT_WITNESS_HOOK_WAIT GT_WITNESS_BAND
if [ "$event" = Mod ]; then
    exec "$python" -S -I "$hooks/gt_mod.py"
fi
exec "$python" -S -I "$hooks/gt_hook.py" "$event"
