// How the server that answers us is started; written anew for each installation.
export const SERVER = []
export const BAND = false
