import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core';
import { BROWSER } from '../../../preload/contract/browser-names.ts';
import type { EventView } from '../../../preload/contract.ts';
import { NOW } from '../../support/console-data.ts';
import { CHROMIUM, openConsole, startConsoleRig } from '../../support/console-page.ts';
import { fullScript, fullTopics } from '../../support/console-script.ts';
import { installProbe, type Probed, scrollFrames } from '../console/page-probe.ts';
import { writePast } from '../console/past.ts';
import { startRelay } from '../console/relay.ts';
import { type BenchAgent, folder, type Plane, pair, ready, startAgent, startPlane, startStub } from '../processes.ts';
import { type Figure, median, type Row } from '../report.ts';
import { CHAT_BODY } from './chat.ts';

const NODES = 20;
const REQUESTS_PER_SECOND = 4;
const MIB = 1024 * 1024;
const EVENTS = 100_000;
const LOGS_FULL_MS = 7 * 60_000;
/** A frame that comes later than this was missed at 60 Hz. */
const LATE_FRAME_MS = 25;

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Least squares of samples that are evenly apart. */
function slopePerHour(values: readonly number[], stepMs: number): number {
  const [middle, mean] = [(values.length - 1) / 2, values.reduce((sum, value) => sum + value, 0) / values.length];
  const over = values.reduce((sum, value, at) => sum + (at - middle) * (value - mean), 0);
  const under = values.reduce((sum, _, at) => sum + (at - middle) ** 2, 0);
  return (over / under) * (3_600_000 / stepMs);
}

interface Rig {
  readonly plane: Plane;
  readonly stop: () => Promise<void>;
}

/** A control plane with a day behind it, twenty agents before one engine, and a little work that keeps their figures moving. */
async function fleet(): Promise<Rig> {
  const dataDir = mkdtempSync(path.join(folder, 'console-'));
  await writePast(dataDir);
  const stub = await startStub('chat');
  const plane = await startPlane({ dataDir, probed: false });
  const agents: BenchAgent[] = [];
  for (let at = 0; at < NODES; at += 1) {
    const agent = await startAgent([stub.url], false);
    agents.push(agent);
    await pair(plane, agent);
  }
  await ready(plane, 'code-assistant', NODES);
  const timer = setInterval(() => {
    void fetch(`${plane.endpoint}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${plane.apiKey}`, 'content-type': 'application/json' },
      body: CHAT_BODY,
    })
      .then((answer) => answer.arrayBuffer())
      .catch(() => undefined);
  }, 1000 / REQUESTS_PER_SECOND);
  return {
    plane,
    stop: async () => {
      clearInterval(timer);
      await plane.stop();
      await Promise.all(agents.map((agent) => agent.stop()));
      await stub.stop();
    },
  };
}

async function signedIn(plane: Plane): Promise<string> {
  const answer = await fetch(plane.endpoint + BROWSER.signIn, {
    method: 'POST',
    headers: { authorization: `Bearer ${plane.adminToken}`, 'content-type': 'application/json' },
    body: '{}',
  });
  return ((await answer.json()) as { token: string }).token;
}

async function heapMiB(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  const { metrics } = await session.send('Performance.getMetrics');
  return (metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? Number.NaN) / MIB;
}

/** From the click on "24 h" until the charts hold the day. */
async function opensDay(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const line = () => document.querySelectorAll('.recharts-line-curve')[0]?.getAttribute('d') ?? '';
        const before = line();
        const label = [...document.querySelectorAll('.segments label')].find((one) => one.textContent === '24 h');
        const beganMs = performance.now();
        (label?.querySelector('input') as HTMLInputElement | null)?.click();
        const look = () => {
          // An hour's line became a day's: other, and not the empty one of the moment between.
          if (line() !== before && line().length > 1000) {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => resolve(performance.now() - beganMs);
            port2.postMessage(null);
          } else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
      }),
  );
}

async function overview(minutes: number): Promise<readonly Figure[]> {
  const rig = await fleet();
  const port = Number(new URL(rig.plane.endpoint).port);
  const relay = await startRelay(port);
  let browser: Browser | null = null;
  try {
    browser = await chromium.launch({
      ...(CHROMIUM ? { executablePath: CHROMIUM } : {}),
      // The page's address stays the control plane's own, which looks at it; only the way there leads through the relay.
      args: ['--no-sandbox', `--host-resolver-rules=MAP localhost:${port} 127.0.0.1:${relay.port}`],
    });
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    await context.addInitScript(
      (token) => sessionStorage.setItem('switchyard.session', token),
      await signedIn(rig.plane),
    );
    await context.addInitScript(installProbe);
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send('Performance.enable');
    await page.goto(`http://localhost:${port}/console/#/overview`);
    await page.locator('.recharts-line-curve').nth(3).waitFor({ timeout: 60_000 });
    await rest(5_000);
    const days: number[] = [];
    for (let times = 0; times < 3; times += 1) {
      await page.getByText('1 h', { exact: true }).click();
      await rest(1_500);
      days.push(await opensDay(page));
      await rest(1_500);
    }
    await rest(10_000);
    const probe = () => page.evaluate(() => ({ ...(globalThis as unknown as Probed).switchyardProbe }));
    const before = await probe();
    const from = relay.pushedAtMs.length;
    const beganMs = performance.now();
    const heaps: number[] = [await heapMiB(session)];
    const steps = Math.max(3, Math.round(minutes));
    for (let step = 0; step < steps; step += 1) {
      await rest((minutes * 60_000) / steps);
      heaps.push(await heapMiB(session));
    }
    const lastedMs = performance.now() - beganMs;
    const after = await probe();
    const delays: number[] = [];
    for (let at = from; at < Math.min(relay.pushedAtMs.length, after.painted.length); at += 1) {
      const painted = after.painted[at];
      const pushed = relay.pushedAtMs[at];
      if (typeof painted === 'number' && pushed !== undefined) delays.push(painted - pushed);
    }
    const stepMs = lastedMs / steps;
    // The console's own logs are full by then: of samples, one a second, it keeps 400.
    const full = minutes >= 10 ? heaps.slice(Math.ceil(LOGS_FULL_MS / stepMs)) : heaps;
    const third = Math.max(1, Math.floor(full.length / 3));
    const [early, last] = [median(full.slice(0, third)), median(full.slice(-third))];
    const since = minutes >= 10 ? 'since its logs were full' : 'its logs still fill';
    console.error(`heap by step, MiB: ${heaps.map((heap) => heap.toFixed(1)).join(' ')}`);
    const note = `${NODES} machines, a day of history open, ${minutes} min`;
    return [
      { name: 'push to paint, p95', value: quantile(delays, 0.95), unit: 'ms', goal: ['<=', 100], note },
      { name: 'push to paint, p50', value: quantile(delays, 0.5), unit: 'ms', goal: null },
      { name: 'messages a second', value: delays.length / (lastedMs / 1000), unit: '/s', goal: null },
      {
        name: 'time in long tasks',
        value: (100 * (after.longTaskMs - before.longTaskMs)) / lastedMs,
        unit: '%',
        goal: ['<=', 5],
      },
      { name: 'heap after garbage collection', value: last, unit: 'MiB', goal: null },
      { name: 'heap slope', value: slopePerHour(full, stepMs), unit: 'MiB/h', goal: null, note: since },
      { name: 'heap grows', value: 100 * (last / early - 1), unit: '%', goal: minutes >= 10 ? ['<=', 5] : null },
      { name: 'a day opens', value: median(days), unit: 'ms', goal: ['<=', 300] },
    ];
  } finally {
    await browser?.close();
    await relay.close();
    await rig.stop();
  }
}

/** Uses nothing of this file: it is called in the page too. */
const makeEvent = (index: number, firstMs: number): EventView => ({
  id: String(index).padStart(8, '0'),
  atMs: firstMs + index * 500,
  severity: index % 50 === 0 ? 'error' : index % 7 === 0 ? 'warn' : 'info',
  source: ['fleet', 'gate', 'cloud', 'app'][index % 4] ?? 'app',
  code: 'node_silent',
  sentence: `workstation-${index % 97}: the connection to the agent broke; it is being made anew`,
  needsPerson: false,
  requestId: null,
  nodeId: null,
  providerId: null,
  role: null,
});
const FIRST_MS = NOW - EVENTS * 500;
const event = (index: number): EventView => makeEvent(index, FIRST_MS);
/** Pages of older events are made in the page, so that the way there is not what is measured. */
const OLDER = `{
  const makeEvent = ${makeEvent};
  const { call } = switchyard;
  switchyard.call = (name, input) => {
    if (name !== 'events.list') return call(name, input);
    const end = Number(input.before);
    const from = Math.max(0, end - input.limit);
    const events = Array.from({ length: end - from }, (_, at) => makeEvent(end - 1 - at, ${FIRST_MS}));
    return Promise.resolve({ ok: true, value: { events, more: from > 0 } });
  };
}`;

/** Turns the wheel, a notch about every frame, until what is measured has ended. */
async function whileTurning<Value>(page: Page, measure: () => Promise<Value>): Promise<Value> {
  let over = false;
  const measured = measure().finally(() => {
    over = true;
  });
  while (!over) await Promise.all([page.mouse.wheel(0, -120), rest(16)]);
  return measured;
}

/** Pages of a thousand through the console's own button, then scrolling, new rows that are followed, and a search. */
async function events(): Promise<readonly Figure[]> {
  const rig = await startConsoleRig();
  try {
    const shown = await openConsole(rig, {
      hash: '#/events',
      // The page asks first whether there is anything older.
      script: fullScript({ 'events.list': () => ({ events: [event(0)], more: true }) }),
      topics: { ...fullTopics(), events: { topic: 'events', type: 'snapshot', rows: [event(EVENTS - 1)] } },
    });
    const { page } = shown;
    const older = page.getByRole('button', { name: 'Load older' });
    await older.waitFor();
    await page.evaluate(OLDER);
    const beganMs = performance.now();
    while (await older.isVisible()) {
      const count = await page.locator('.page small').last().textContent();
      await older.click();
      await page.waitForFunction((text) => document.querySelector('.page p small')?.textContent !== text, count);
    }
    const loadedMs = performance.now() - beganMs;
    const scroll = (stepPx: number) => page.evaluate(scrollFrames, { selector: '.event-list', stepPx, frames: 240 });
    const list = page.locator('.event-list');
    await list.evaluate((element) => element.scrollTo({ top: 1_000_000 }));
    await list.hover();
    let next = EVENTS;
    const pushing = setInterval(() => {
      const changed = Array.from({ length: 10 }, () => event(next++));
      void shown.push({ topic: 'events', type: 'delta', changed, removed: [] }).catch(() => undefined);
    }, 500);
    const wheeled = await whileTurning(page, () => scroll(0));
    const flown = await scroll(4_000);
    await page.getByRole('button', { name: /Follow|new, follow/ }).click();
    const followed = await scroll(0);
    const search = await page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          const field = document.querySelector<HTMLInputElement>('[data-filter]');
          const setter = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')?.set;
          const total = document.querySelector('.page p small')?.textContent;
          const beganMs = performance.now();
          setter?.call(field, 'workstation-42');
          field?.dispatchEvent(new Event('input', { bubbles: true }));
          const look = () => {
            if (document.querySelector('.page p small')?.textContent !== total) resolve(performance.now() - beganMs);
            else requestAnimationFrame(look);
          };
          requestAnimationFrame(look);
        }),
    );
    clearInterval(pushing);
    await shown.close();
    const late = (gaps: readonly number[]) => (100 * gaps.filter((gap) => gap > LATE_FRAME_MS).length) / gaps.length;
    const perSecond = (gaps: readonly number[]) => 1000 / (gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length);
    return [
      {
        name: 'events under the wheel',
        value: perSecond(wheeled),
        unit: 'frames/s',
        goal: ['>=', 58],
        note: '100,000 rows, 20 new a second',
      },
      { name: 'events under the wheel, late frames', value: late(wheeled), unit: '%', goal: null },
      {
        name: 'events fly past',
        value: perSecond(flown),
        unit: 'frames/s',
        goal: ['>=', 58],
        note: '133 rows a frame, faster than anybody reads',
      },
      { name: 'events are followed', value: perSecond(followed), unit: 'frames/s', goal: ['>=', 58] },
      { name: 'a search shows its rows', value: search, unit: 'ms', goal: null },
      { name: '100 pages of older events are loaded', value: loadedMs / 1000, unit: 's', goal: null },
    ];
  } finally {
    await rig.close();
  }
}

const needsBrowser = () => {
  if (!CHROMIUM) throw new Error('needs Chromium');
};

export const consoleRow: Row = {
  name: 'console',
  async run({ quick }) {
    needsBrowser();
    return overview(quick ? 1 : 3);
  },
};

export const consoleEvents: Row = {
  name: 'console events',
  async run() {
    needsBrowser();
    return events();
  },
};

/** `SWITCHYARD_BENCH_MINUTES` shortens or lengthens it. */
export const consoleSoak: Row = {
  name: 'GUI over 30 min',
  long: true,
  async run() {
    needsBrowser();
    return overview(Number(process.env.SWITCHYARD_BENCH_MINUTES ?? 30));
  },
};
