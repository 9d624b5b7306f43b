import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import {
  type Answer,
  OPERATIONS,
  type OperationName,
  type Output,
  type TopicName,
  type TopicUpdate,
} from '../../preload/contract.ts';
import { CHROMIUM } from './runtime.ts';

export { CHROMIUM };

const root = path.resolve(import.meta.dirname, '../..');

/** The policy under which the desktop serves its window. */
export const CONTENT_POLICY = [
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

/** The production build of the console behind its content policy, and a Chromium to look at it. */
export interface ConsoleRig {
  readonly url: string;
  readonly browser: Browser;
  close(): Promise<void>;
}

export async function startConsoleRig(): Promise<ConsoleRig> {
  const folder = await mkdtemp(path.join(tmpdir(), 'switchyard-console-'));
  await promisify(execFile)(
    path.join(root, 'node_modules/.bin/vite'),
    ['build', '--outDir', folder, '--logLevel', 'error'],
    {
      cwd: root,
      env: { ...process.env, NODE_ENV: 'production' },
    },
  );
  const server = await serve(folder);
  const browser = await chromium.launch({
    ...(CHROMIUM ? { executablePath: CHROMIUM } : {}),
    args: ['--no-sandbox', '--force-color-profile=srgb'],
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    browser,
    close: async () => {
      await browser.close();
      server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function serve(folder: string): Promise<Server> {
  const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };
  const server = createServer((request, response) => {
    const name = request.url === '/' ? 'index.html' : (request.url ?? '').slice(1);
    readFile(path.join(folder, path.normalize(name))).then(
      (body) => {
        response.writeHead(200, {
          'content-type': types[path.extname(name)] ?? 'application/octet-stream',
          'content-security-policy': CONTENT_POLICY,
        });
        response.end(body);
      },
      () => {
        response.writeHead(404);
        response.end();
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

export type Script = { [Name in OperationName]?: (input: unknown) => Output<Name> | Promise<Output<Name>> };
/** First message of each topic; a topic that is absent stays silent. */
export type Topics = { [Name in TopicName]?: TopicUpdate<Name> };

export interface ConsolePage {
  readonly page: Page;
  /** Calls in their order, with inputs as the contract parsed them. */
  readonly calls: { readonly name: string; readonly input: unknown }[];
  readonly pushedKeys: number[][];
  /** What the page complained of: errors, and violations of its policy. */
  readonly complaints: string[];
  script: Script;
  push(update: TopicUpdate): Promise<void>;
  close(): Promise<void>;
}

/** An answer that is a refusal. */
export class Refusal extends Error {
  readonly code: string;
  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/**
 * A page whose bridge is played by the test. Inputs and answers are checked against the contract, so that neither the console nor
 * the test can say what the control plane would not understand.
 */
export async function openConsole(
  rig: ConsoleRig,
  options: {
    readonly script: Script;
    readonly topics: Topics;
    readonly hash?: string;
    readonly context?: BrowserContextOptions;
    /** The page's clock stands at this moment and goes on from there. */
    readonly nowMs?: number;
  },
): Promise<ConsolePage> {
  const context = await rig.browser.newContext({ locale: 'en-US', timezoneId: 'UTC', ...options.context });
  const page = await context.newPage();
  const calls: { name: string; input: unknown }[] = [];
  const pushedKeys: number[][] = [];
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.text().includes('Content Security Policy'))
      complaints.push(message.text());
  });
  const self: ConsolePage = {
    page,
    calls,
    pushedKeys,
    complaints,
    script: options.script,
    push: async (update) => {
      await page.evaluate((sent) => (globalThis as unknown as Rigged).scripted.tell(sent), update as never);
    },
    close: () => context.close(),
  };
  if (options.nowMs !== undefined) await page.clock.install({ time: options.nowMs });
  await page.exposeFunction('scriptedCall', (name: OperationName, input: unknown) => answer(self, name, input));
  await page.exposeFunction('scriptedKey', (bytes: number[]) => {
    pushedKeys.push(bytes);
    return answer(self, 'cloud.status', {});
  });
  await page.exposeFunction('scriptedTopic', (topic: TopicName) => options.topics[topic] ?? null);
  await page.addInitScript(installBridge);
  await page.goto(`${rig.url}${options.hash ?? '#/overview'}`);
  return self;
}

async function answer(self: ConsolePage, name: OperationName, input: unknown): Promise<Answer> {
  const operation = OPERATIONS[name];
  const parsed = operation.input.safeParse(input);
  if (!parsed.success) {
    self.complaints.push(`${name}: input does not fit the contract`);
    return { ok: false, code: 'invalid_request', detail: null };
  }
  self.calls.push({ name, input: parsed.data });
  const play = self.script[name] as ((input: unknown) => unknown) | undefined;
  if (!play) return { ok: false, code: 'not_found', detail: null };
  try {
    const value = await play(parsed.data);
    const fits = operation.output.safeParse(value);
    if (!fits.success) self.complaints.push(`${name}: answer does not fit the contract: ${fits.error.message}`);
    return { ok: true, value };
  } catch (error) {
    return { ok: false, code: error instanceof Refusal ? error.code : 'internal_error', detail: null };
  }
}

interface Rigged {
  readonly scriptedCall: (name: string, input: unknown) => Promise<unknown>;
  readonly scriptedKey: (bytes: number[]) => Promise<unknown>;
  readonly scriptedTopic: (topic: string) => Promise<unknown>;
  readonly scripted: { tell(update: unknown): void };
}

/** Runs in the page, before its own scripts. */
function installBridge(): void {
  const rigged = globalThis as unknown as Rigged;
  const listeners = new Set<(update: unknown) => void>();
  const wanted = new Set<string>();
  const tell = (update: unknown) => {
    for (const listener of listeners) listener(update);
  };
  Object.assign(globalThis, {
    scripted: { tell },
    switchyard: {
      call: (name: string, input: unknown) => rigged.scriptedCall(name, input),
      pushCloudKey: (bytes: Uint8Array) => rigged.scriptedKey([...bytes]),
      want: (topics: readonly string[]) => {
        for (const topic of topics) {
          if (wanted.has(topic)) continue;
          wanted.add(topic);
          void rigged.scriptedTopic(topic).then((first) => first && tell(first));
        }
        for (const topic of [...wanted]) if (!topics.includes(topic)) wanted.delete(topic);
      },
      onUpdate: (listener: (update: unknown) => void) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      onShow: () => () => undefined,
    },
  });
}
