// gt-witness plugin: records each completed tool call and hands over what waits for the agent.
// It only translates: the hook that it calls is the same as in other clients, and fails no agent either.
import { spawn } from "node:child_process"
import { readdirSync } from "node:fs"

const COMMAND = ["GT_HOOK"]
const LIMIT = 5000
// How often an idle session looks whether something waits for it.
const TICK = 2000

function call(event, payload) {
  return new Promise((resolve) => {
    if (!process.env.GT_WITNESS_SPOOL) return resolve("")
    let out = ""
    const [program, ...args] = COMMAND
    const child = spawn(program, [...args, event], { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT)
    child.stdout.on("data", (data) => (out += data))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve(""))
    child.on("close", () => {
      clearTimeout(timer)
      try {
        const answer = JSON.parse(out)
        resolve(answer.reason ?? answer.hookSpecificOutput?.additionalContext ?? "")
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify({ hook_event_name: event, client: "opencode", ...payload }))
  })
}

function waits() {
  try {
    return readdirSync(process.env.GT_WITNESS_QUEUE).some((name) => name.endsWith(".json"))
  } catch {
    return false
  }
}

export const GtWitness = async ({ client, directory }) => {
  if (!process.env.GT_WITNESS_SPOOL) return {}
  let main = null
  let idle = false
  let lastFailed = null

  async function wake() {
    idle = false
    const text = await call("Stop", { session_id: main, cwd: directory, stop_hook_active: false })
    if (text) await client.session.promptAsync({ path: { id: main }, body: { parts: [{ type: "text", text }] } })
    else idle = true
  }

  // A call that failed comes by as an event, once or more often, and never as one of tool.execute.after. It is recorded
  // under a name of its own: there is nowhere to put what waits for the agent.
  async function failed(part) {
    if (part.type !== "tool" || part.callID === lastFailed) return
    lastFailed = part.callID
    const payload = {
      hook_event_name: "PostToolUseFailure",
      session_id: part.sessionID,
      cwd: directory,
      tool_name: part.tool,
      tool_input: part.state.input ?? {},
      error: String(part.state.error ?? "").slice(0, 200000),
      tool_use_id: part.callID,
    }
    if (main && part.sessionID !== main) payload.agent_id = part.sessionID
    await call("ToolFailed", payload)
  }

  const began = new Map()

  setInterval(() => {
    if (idle && main && waits()) wake().catch(() => {})
  }, TICK).unref()

  return {
    event: async ({ event }) => {
      const properties = event.properties ?? {}
      if (event.type === "session.created" && !properties.info?.parentID) {
        main = properties.info?.id ?? null
        await call("SessionCreated", { session_id: main, cwd: directory })
      } else if (event.type === "session.idle" && main && properties.sessionID === main) {
        await wake()
      } else if (event.type === "message.part.updated" && properties.part?.state?.status === "error") {
        await failed(properties.part)
      }
    },
    "chat.message": async (input) => {
      if (input.sessionID === main) idle = false
    },
    "tool.execute.before": async (input) => {
      if (began.size > 1000) began.clear() // calls that were refused never end
      began.set(input.callID, Date.now())
    },
    "tool.execute.after": async (input, output) => {
      const payload = {
        session_id: input.sessionID,
        cwd: directory,
        tool_name: input.tool,
        tool_input: input.args ?? output.metadata?.args ?? {},
        tool_response: String(output.output ?? "").slice(0, 200000),
        tool_use_id: input.callID,
      }
      if (began.has(input.callID)) payload.duration_ms = Date.now() - began.get(input.callID)
      began.delete(input.callID)
      if (Number.isInteger(output.metadata?.exit)) payload.exit = output.metadata.exit
      // What waits is for the main agent; a subagent's session is another one.
      if (main && input.sessionID !== main) payload.agent_id = input.sessionID
      const text = await call("PostToolUse", payload)
      if (text) output.output = `${output.output ?? ""}\n\n${text}`
    },
  }
}
