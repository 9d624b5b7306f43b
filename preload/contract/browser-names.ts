/**
 * The same contract for a console in a browser. The address carries a single-use ticket in its fragment (`#ticket=...`), which is
 * exchanged for a session token; the token lives in sessionStorage and travels as `Authorization: Bearer`. The WebSocket is opened
 * with a ticket of 10 s as its sub-protocol, since a browser cannot set headers there.
 */
export const BROWSER = {
  /** POST {ticket} -> {token} */
  session: '/console/session',
  /** POST (bearer: the admin token) -> {token}: the way back in when no ticket is at hand. */
  signIn: '/console/sign-in',
  /** POST (bearer) -> {ticket}, for one WebSocket */
  socketTicket: '/console/socket-ticket',
  /** WebSocket, sub-protocols [`switchyard.console.1`, `ticket.<ticket>`] */
  socket: '/console/socket',
  protocol: 'switchyard.console.1',
  ticketProtocolPrefix: 'ticket.',
  /** POST <call>/<operation name> with the input as JSON -> the output, or {error: {code, message}} */
  call: '/admin/op',
  /** PUT application/octet-stream; `?nodes=a,b&remember=1` narrows it. */
  cloudKey: '/admin/cloud/key',
} as const;
