// gt-witness inside Claude Code: answers the client's hook events over one Unix socket, in place of a command hook.
// Whatever goes wrong here ends in next(e), and the command hook does it: each call has one channel.
import { SERVER, BAND, OTHERS, RETRY } from './server.js'

// The server answers within this, or says that it needs longer; else it counts as silent.
const FIRST = 50
const REST = 1500
// A silent server is left alone for so long.
const ASIDE = 30000
// One that has ended is started again, with patience.
const AGAIN = 2000
const REMEMBERED = 64

let socket = ''
let starting = null
let until = 0
// False once the server has said that nobody follows this session: then there is nothing for a hook of ours either.
let followed = true
let waiting = true
let passes = new Set()
let band = ''
// Marks of the answers that the client has used; a server that comes up is told.
const taken = []
// What was noted and is not confirmed: [event, body].
const unsure = new Set()
// Directories before the calls that run, by tool_use_id.
const before = new Map()
// Calls that an event was sent for.
const seen = new Set()

const late = (ms) => new Promise((done) => setTimeout(() => done('late'), ms))

function remember(list, item) {
  list.push(item)
  if (list.length > REMEMBERED) list.shift()
}

// -- other people's hooks ------------------------------------------------------------------------------------------------

// Events for which somebody else's hooks stand in the settings; true: for any, as plugins may bring some. To answer an
// event ourselves would keep those from running, so such an event is left to the command hooks, ours among them.
let others = true

const isOurs = (handler) => JSON.stringify(handler).includes('gt_hook.py')

async function lookForOthers($) {
  try {
    const { hooks, enabledPlugins } = await $.settings.read()
    const plugins = Object.entries(enabledPlugins ?? {}).filter(([name]) => !name.startsWith('gt-witness@'))
    if (OTHERS || plugins.some(([, enabled]) => enabled)) others = true
    else {
      const foreign = (entries) => entries.some((entry) => (entry.hooks ?? [entry]).some((each) => !isOurs(each)))
      others = new Set(Object.keys(hooks ?? {}).filter((event) => foreign(hooks[event])))
    }
  } catch {
    others = true
  }
}

const isShared = (event) => others === true || others.has(event)

// -- the server ---------------------------------------------------------------------------------------------------------

// Runs for as long as the server does. Resolves `ready` when it answers, or is known not to.
async function serve($, ready) {
  let rest = ''
  try {
    await lookForOthers($)
    const child = $.process.spawn({ argv: SERVER, env: await $.process.hookEnv() })
    for (;;) {
      const { done, value } = await child.next()
      if (done) {
        // 3: this session is not ours; a person's own may become so.
        followed = value?.code !== 3
        until = Date.now() + (followed ? AGAIN : RETRY)
        break
      }
      if (value.stream !== 'stdout') continue
      const lines = (rest + value.text).split('\n')
      rest = lines.pop()
      for (const line of lines) await hear($, JSON.parse(line), ready)
    }
  } catch {
    until = Date.now() + ASIDE
  }
  socket = ''
  starting = null
  ready()
}

async function hear($, news, ready) {
  if (news.passes) passes = new Set(news.passes)
  if (news.waiting !== undefined) waiting = news.waiting
  if (news.band !== undefined && news.band !== band) {
    band = news.band
    if (BAND) $.ui.invalidate('ui.render')
  }
  if (news.ready) {
    socket = news.ready
    followed = true
    await post($, 'hello', JSON.stringify({ taken }), REST)
    ready()
  }
  if (news.submit) submit($, news.submit)
  if (news.complete) void complete($, news.complete)
}

function start($) {
  if (!SERVER.length || socket || starting || Date.now() < until) return starting
  starting = new Promise((ready) => void serve($, ready))
  return starting
}

// The answer, 'late', or null when nobody answers any more. `done` is called when an answer comes, however late.
function post($, path, body, ms, done) {
  const request = $.http.fetch(`http://gt-witness/${path}`, { method: 'POST', socketPath: socket, body })
  const answer = request.then((reply) => (reply.ok ? JSON.parse(reply.text) : null)).catch(() => null)
  if (done) void answer.then((reply) => reply && done())
  return Promise.race([answer, late(ms)])
}

// -- events -------------------------------------------------------------------------------------------------------------

function record(e) {
  const cwd = before.get(e.tool_use_id)
  before.delete(e.tool_use_id)
  return JSON.stringify(cwd === undefined ? e : { ...e, cwd_before: cwd })
}

// Records an event that nobody waits for. What was not confirmed is sent again with the next one.
async function note($, event, body) {
  const entry = [event, body]
  unsure.add(entry)
  const sent = await send($, 'note', entry)
  if (sent) for (const other of [...unsure]) if (other !== entry) await send($, 'again', other)
}

async function send($, verb, entry) {
  if (!socket) return false
  const reply = await post($, `${verb}/${entry[0]}`, entry[1], REST)
  if (!reply || reply === 'late' || reply.pass) return false
  unsure.delete(entry)
  return true
}

// The server's answer to an event; null: let the command hook do it.
async function ask($, event, body) {
  if (Date.now() < until) return null
  // A session that nobody follows waits for nothing of ours.
  if (!socket && followed) await Promise.race([start($), late(FIRST)])
  if (!socket) return null
  const sent = Date.now()
  // A busy machine makes an answer late, too; only a server that does not answer at all is left alone.
  let reply = await post($, `ask/${event}/${sent}`, body, FIRST, () => (until = 0))
  if (reply?.more) reply = await post($, `rest/${reply.more}/${Date.now()}`, '', REST)
  if (reply === 'late') until = Date.now() + ASIDE
  return reply === 'late' || !reply || reply.pass ? null : reply
}

// Answers an event in place of the command hook. `give` makes the client's form of the text.
async function answer($, event, e, next, give) {
  if (isShared(event)) return next(e)
  if (isNobodys($, e)) return {}
  const body = record(e)
  const reply = await ask($, event, body)
  if (!reply) return next(e)
  if (reply.text === undefined) return {}
  if (next.signal.aborted) {
    void post($, `untaken/${reply.call}`, '', REST)
    return {}
  }
  remember(taken, reply.call)
  return give(reply.text)
}

// Whether nobody follows a session that a person has started. It is asked about again now and then, and right after the
// call that has it followed; no event waits for that.
function isNobodys($, e) {
  if (followed || RETRY === Infinity) return false
  if (String(e.tool_input?.command).includes('follow')) until = 0
  void start($)
  return true
}

// An event that needs no answer: recorded on the way, without waiting. The last one of a session is waited for.
async function pass($, event, e, next, wait) {
  if (isShared(event)) return next(e)
  if (isNobodys($, e)) return {}
  if (!socket || Date.now() < until) return next(e)
  const noted = note($, event, record(e))
  if (wait) await Promise.race([noted, late(FIRST)])
  return {}
}

const context = (text) => ({ additionalContext: [text] })

async function tool($, event, e, next) {
  seen.add(e.tool_use_id)
  if (!waiting && passes.has(e.tool_name)) return pass($, event, e, next, false)
  return answer($, event, e, next, context)
}

// -- what only the inside knows -----------------------------------------------------------------------------------------

// A call that no hook is sent for: refused, or failed before it ran.
function failed(e, result, cwd) {
  const { tool, tool_use_id, agentId, ...input } = e
  return JSON.stringify({
    hook_event_name: result.deny === undefined ? 'ToolFailed' : 'ToolDenied',
    cwd,
    cwd_before: cwd,
    tool_name: tool,
    tool_input: input,
    error: String(result.deny ?? result.text ?? '').slice(0, 4000),
    tool_use_id,
    ...(agentId === undefined ? {} : { agent_id: agentId }),
  })
}

// A sidecar's question to the client's own model.
async function complete($, { id, ...asked }) {
  let told
  try {
    const { isAnswered, text, usage } = await $.model.complete(asked)
    told = { isAnswered, text, usage }
  } catch (error) {
    told = { fault: String(error?.message ?? error).slice(0, 500) }
  }
  await post($, `completed/${id}`, JSON.stringify(told), REST)
}

function submit($, { call, text, asUser }) {
  remember(taken, call)
  $.prompt.submit(asUser ? { text, asUser: true } : { text }).catch(async () => {
    await post($, `untaken/${call}`, '', REST)
    await late(AGAIN)
    await post($, 'idle', '', REST)
  })
}

export const register = (on) => {
  on('session.start', async ($, e, next) => {
    await Promise.race([start($), late(500)])
    return next(e)
  })
  on('tool.call', async ($, e, next) => {
    if (!socket) return next(e)
    // Only a shell changes directories.
    if (e.tool === 'Bash') before.set(e.tool_use_id, await $.session.cwd())
    const result = await next(e)
    if ((result.isError || result.deny !== undefined) && !seen.has(e.tool_use_id))
      void note($, 'ToolFailed', failed(e, result, before.get(e.tool_use_id) ?? (await $.session.cwd())))
    before.delete(e.tool_use_id)
    seen.delete(e.tool_use_id)
    return result
  }).catch(($, e, next) => next(e))
  on('classic.PostToolUse', ($, e, next) => tool($, 'PostToolUse', e, next)).catch(($, e, next) => next(e))
  on('classic.PostToolUseFailure', ($, e, next) => tool($, 'PostToolUseFailure', e, next)).catch(($, e, next) => next(e))
  on('classic.UserPromptSubmit', ($, e, next) => {
    void lookForOthers($)
    return answer($, 'UserPromptSubmit', e, next, context)
  }).catch(($, e, next) => next(e))
  on('classic.SessionStart', ($, e, next) => answer($, 'SessionStart', e, next, context)).catch(($, e, next) => next(e))
  on('classic.Stop', ($, e, next) => answer($, 'Stop', e, next, (text) => ({ block: text }))).catch(($, e, next) => next(e))
  on('classic.SubagentStop', ($, e, next) => pass($, 'SubagentStop', e, next, false)).catch(($, e, next) => next(e))
  on('classic.PreCompact', ($, e, next) => pass($, 'PreCompact', e, next, false)).catch(($, e, next) => next(e))
  on('classic.SessionEnd', ($, e, next) => pass($, 'SessionEnd', e, next, true)).catch(($, e, next) => next(e))
  on('turn.complete', async ($, e, next) => {
    if (socket && e.agentId === undefined) void post($, 'idle', '', REST)
    return next(e)
  })
  on('session.measure', async ($, e, next) => {
    if (socket) void post($, 'usage', JSON.stringify({ context: e.context, rateLimits: e.rateLimits, cost: e.cost }), REST)
    return next(e)
  })
  on('ui.render', { component: 'AbovePrompt' }, async ($, e, next) => {
    if (!BAND || !band) return next(e)
    const { Box, Text } = $.ui.resolve(e)
    return h(Box, {}, h(Text, { dimColor: true }, band))
  })
}
