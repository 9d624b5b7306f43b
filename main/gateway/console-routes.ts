import { z } from 'zod';
import { BROWSER } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { Clock } from '../domain/time.ts';
import { readObject } from './admin-input.ts';
import { bearerToken, matchesToken } from './auth.ts';
import type { ConsoleSessions } from './console-sessions.ts';
import { jsonReply } from './error-reply.ts';
import { invalidField } from './json-body.ts';
import type { ConsoleFile } from './ports.ts';
import type { Call, Route } from './routes.ts';

export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

/** Of a body that is read before anybody has shown who they are. */
const TICKET_LIMITS = { bytes: 4096, timeoutMs: 10_000 };

const PAGE_HEADERS = [
  'content-security-policy',
  CONTENT_SECURITY_POLICY,
  'referrer-policy',
  'no-referrer',
  'cross-origin-opener-policy',
  'same-origin',
];

export interface ConsolePorts {
  readonly sessions: ConsoleSessions;
  readonly files: ReadonlyMap<string, ConsoleFile>;
  readonly clock: Clock;
  /** Of the admin token, which opens a session too. */
  readonly adminTokenSha256: string;
}

/** The console in a browser: its files from a fixed map, and the tickets or the token that open it. */
export function consoleRoutes(ports: ConsolePorts): Route[] {
  const page = (path: string, summary: string, handle: (call: Call) => void): Route => ({
    method: 'GET',
    path,
    access: 'console',
    form: 'openai',
    document: { summary, tag: 'Console', responseType: 'text/html' },
    handle,
  });
  const toConsole = (call: Call): void => {
    call.reply.head(303, ['location', '/console/', 'content-length', '0', ...PAGE_HEADERS]);
    call.reply.end();
  };
  return [
    page('/', 'To the console', toConsole),
    page('/console', 'To the console', toConsole),
    page('/console/', 'The console', (call) => sendFile(call, ports.files.get('index.html'))),
    page('/console/:file', 'A file of the console', (call) => {
      sendFile(call, ports.files.get(call.parameters.get('file') ?? ''));
    }),
    page('/console/assets/:file', 'A file of the console', (call) => {
      sendFile(call, ports.files.get(`assets/${call.parameters.get('file') ?? ''}`));
    }),
    {
      method: 'POST',
      path: BROWSER.session,
      access: 'console',
      form: 'openai',
      document: {
        summary: "Exchange the single-use ticket of the console's address for a session",
        tag: 'Console',
        request: z.object({ ticket: z.string() }),
        response: z.object({ token: z.string() }),
      },
      handle: async (call) => {
        const ticket = (await readObject(call, ports.clock, TICKET_LIMITS)).get('ticket');
        if (typeof ticket !== 'string') throw invalidField('ticket', 'must be a string');
        jsonReply(call.reply, 200, { token: ports.sessions.openSession(ticket) }, ['cache-control', 'no-store']);
      },
    },
    {
      method: 'POST',
      path: BROWSER.signIn,
      access: 'console',
      form: 'openai',
      document: {
        summary: 'Exchange the admin token, sent as bearer, for a session; a session opens no other',
        tag: 'Console',
        response: z.object({ token: z.string() }),
      },
      handle: (call) => {
        const token = bearerToken(call.request);
        if (token === null || !matchesToken(token, ports.adminTokenSha256)) {
          throw new SwitchyardError('invalid_admin_token');
        }
        jsonReply(call.reply, 200, { token: ports.sessions.openSessionOfAdmin() }, ['cache-control', 'no-store']);
      },
    },
    {
      method: 'POST',
      path: BROWSER.socketTicket,
      access: 'admin',
      form: 'openai',
      document: {
        summary: 'A ticket of 10 s for one WebSocket',
        tag: 'Console',
        response: z.object({ ticket: z.string() }),
      },
      handle: (call) => {
        jsonReply(call.reply, 200, { ticket: ports.sessions.issueSocketTicket() }, ['cache-control', 'no-store']);
      },
    },
    {
      method: 'GET',
      path: BROWSER.socket,
      access: 'console',
      form: 'openai',
      document: {
        summary: `WebSocket with the sub-protocols ${BROWSER.protocol} and ${BROWSER.ticketProtocolPrefix}TICKET`,
        tag: 'Console',
        responseType: 'application/json',
      },
      handle: () => {
        throw new SwitchyardError('upgrade_required');
      },
    },
  ];
}

function sendFile(call: Call, file: ConsoleFile | undefined): void {
  if (file === undefined) throw new SwitchyardError('not_found');
  call.reply.head(200, [
    'content-type',
    file.contentType,
    'content-length',
    String(file.body.length),
    'cache-control',
    'no-cache',
    ...PAGE_HEADERS,
  ]);
  call.reply.end(file.body);
}
