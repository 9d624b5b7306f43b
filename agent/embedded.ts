import { createInterface } from 'node:readline';
import { z } from 'zod';

/** What the control plane tells the agent that it started itself: one JSON line, never argv or environment. */
const Introduction = z.object({
  controller: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  nodeKey: z.base64().length(44),
});

export interface Introduced {
  readonly controller: string;
  readonly nodeKey: Uint8Array;
}

/** The parent at the other end: a pipe under Node, a message port in Electron's utility process. */
export interface ParentChannel {
  /** Resolves with the introduction; rejects when the first line is none or the parent goes first. */
  readonly introduction: Promise<Introduced>;
  /** The parent is gone, or asks for the end. */
  readonly gone: Promise<void>;
  /** One JSON line to the parent. */
  tell(message: object): void;
}

interface UtilityPort {
  on(event: 'message', listener: (event: { readonly data: unknown }) => void): void;
  postMessage(message: unknown): void;
}

export function parentChannel(): ParentChannel {
  const port = (process as NodeJS.Process & { readonly parentPort?: UtilityPort }).parentPort;
  return port === undefined ? pipeChannel() : portChannel(port);
}

function pipeChannel(): ParentChannel {
  const lines = createInterface({ input: process.stdin });
  const gone = new Promise<void>((resolve) => lines.once('close', resolve));
  const introduction = new Promise<Introduced>((resolve, reject) => {
    lines.once('line', (line) => parseInto(line, resolve, reject));
    lines.once('close', () => reject(new Error('The control plane left before it had introduced itself.')));
  });
  return { introduction, gone, tell: (message) => void process.stdout.write(`${JSON.stringify(message)}\n`) };
}

/** A utility process ends with its parent by itself; an `{"end":true}` asks it to. */
function portChannel(port: UtilityPort): ParentChannel {
  let end: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => {
    end = resolve;
  });
  const introduction = new Promise<Introduced>((resolve, reject) => {
    let introduced = false;
    port.on('message', ({ data }) => {
      if (typeof data !== 'string') return;
      if (introduced) end();
      else parseInto(data, resolve, reject);
      introduced = true;
    });
  });
  return { introduction, gone, tell: (message) => port.postMessage(JSON.stringify(message)) };
}

function parseInto(line: string, resolve: (introduced: Introduced) => void, reject: (error: Error) => void): void {
  try {
    const { controller, nodeKey } = Introduction.parse(JSON.parse(line));
    resolve({ controller, nodeKey: Buffer.from(nodeKey, 'base64') });
  } catch {
    reject(new Error('The control plane introduced itself with something else than its id and a node key.'));
  }
}
