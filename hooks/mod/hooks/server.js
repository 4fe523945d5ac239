// As a plugin that a person has installed. A polecat's copy of the mod has this file written anew for each run.
// How the server that answers us is started; it ends with 3 when this session is not ours.
export const SERVER = ['sh', '-c', 'exec sh "$CLAUDE_PLUGIN_ROOT/hooks/run.sh" Mod']
// Whether a line is drawn above the prompt.
export const BAND = true
// Whether other plugins are loaded besides.
export const OTHERS = false
// Milliseconds after which a session that was not ours is asked about again.
export const RETRY = 1000
