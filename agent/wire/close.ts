/** WebSocket close codes of the protocol. They tell the other side what to do next; the reason text is for logs only. */
export const CLOSE = {
  goingAway: 1001,
  version: 4001,
  /** No proof, whatever the cause: codes, keys and sessions are not told apart. */
  refused: 4003,
  tooManyControllers: 4004,
  /** The agent could not store the node key: the join code still holds. */
  notStored: 4005,
  timeout: 4006,
  violation: 4008,
  /** A newer session of the same control plane took over. */
  superseded: 4009,
  revoked: 4010,
} as const;
