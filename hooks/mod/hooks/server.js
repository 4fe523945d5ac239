// How the server that answers us is started, whether a line is drawn above the prompt, and whether other plugins are
// loaded besides; written anew for each run.
export const SERVER = []
export const BAND = false
export const OTHERS = false
