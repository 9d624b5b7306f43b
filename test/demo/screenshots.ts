import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import type { Page } from 'playwright-core';
import { until } from '../support/cloud.ts';
import { type ControlPlane, removeTemporaryFolders, startControlPlane } from '../support/processes.ts';
import { assertMarks, Camera, go, settled, WIDE } from './camera.ts';
import { DemoFleet } from './fleet.ts';
import { Traffic } from './traffic.ts';
import { Weather } from './weather.ts';

/**
 * Pictures of every page from a fleet that really runs, in every state that a page has; what is broken in them was broken.
 * The charts must hold marks, or the pictures are not taken.
 */
const OVERVIEW_CHARTS = [
  ['Queue depth', '.recharts-line-curve'],
  ['Latency', '.recharts-line-curve'],
  ['429s', '.recharts-bar-rectangle path'],
  ['Cloud permits', '.recharts-area-area'],
] as const;

async function firstRun(camera: Camera): Promise<void> {
  const plane = await startControlPlane({ bundled: true, args: ['--no-discovery'] });
  try {
    const page = await camera.console(plane, plane.adminToken);
    await page.getByRole('heading', { name: 'Welcome' }).waitFor();
    await page.locator('.holders .status.ok').first().waitFor();
    await page.getByRole('button', { name: 'Send a test request' }).click();
    await page.getByText('answered in').waitFor();
    // Once more: the first one waits for the encoder to be loaded.
    await page.getByRole('button', { name: 'Send a test request' }).click();
    await page.getByRole('button', { name: 'Send a test request' }).waitFor();
    await page.getByText('answered in').waitFor();
    await camera.shots(page, 'first-run');
  } finally {
    await plane.stop();
  }
}

async function empty(camera: Camera): Promise<void> {
  const plane = await startControlPlane({ bundled: true });
  try {
    const page = await camera.console(plane, plane.adminToken, 'overview');
    for (const place of ['overview', 'fleet', 'gate', 'budget', 'requests'] as const) {
      await go(page, place);
      await camera.shot(page, `${place}-empty`, place === 'overview' || place === 'requests' ? 'dark' : 'light');
    }
  } finally {
    await plane.stop();
  }
}

/** It went to the cloud because of the wait that it would have had, not because of the one that it had. */
async function leftAtOnce(fleet: DemoFleet, id: string): Promise<boolean> {
  const { steps } = await fleet.operator.get<{ steps: { step: string; waitMs?: number; thresholdMs?: number }[] }>(
    `requests/${id}`,
  );
  const estimate = steps.find(({ step }) => step === 'estimated');
  return (estimate?.waitMs ?? 0) > 1.1 * (estimate?.thresholdMs ?? Number.POSITIVE_INFINITY);
}

async function firstThat<Item>(all: readonly Item[], fits: (one: Item) => Promise<boolean>): Promise<Item | undefined> {
  for (const one of all) if (await fits(one)) return one;
  return undefined;
}

/** What a person opens on a page, with a row that has something to say. */
async function targets(fleet: DemoFleet) {
  const { nodes } = await fleet.operator.get<{ nodes: { id: string; name: string }[] }>('nodes');
  const { verdicts } = await fleet.operator.get<{ verdicts: { id: string; title: string; verdict: string }[] }>('gate');
  const { requests } = await fleet.operator.get<{
    requests: { id: string; route: string | null; overflowed: boolean; outcome: string }[];
  }>('requests?limit=500&role=code-assistant');
  const overflowed = requests.filter((one) => one.overflowed && one.outcome === 'ok');
  const story = (await firstThat(overflowed, ({ id }) => leftAtOnce(fleet, id))) ?? overflowed[0] ?? requests[0];
  return {
    node: nodes.find(({ name }) => name === 'workstation')?.id ?? '',
    verdict: verdicts.find(({ title, verdict }) => title.includes('studio') && verdict !== 'pass')?.id ?? '',
    request: story?.id ?? '',
  };
}

async function pages(camera: Camera, fleet: DemoFleet, page: Page): Promise<void> {
  const { node, verdict, request } = await targets(fleet);
  await go(page, 'overview');
  await page.getByRole('radio', { name: '5 min' }).check({ force: true });
  await settled(page);
  await assertMarks(page, OVERVIEW_CHARTS);
  await camera.shots(page, 'overview');
  await page.getByRole('button', { name: 'Table Queue depth' }).click();
  await camera.shot(page, 'overview-table', 'light');
  await page.getByRole('button', { name: 'Chart Queue depth' }).click();

  await go(page, 'budget');
  await settled(page);
  await assertMarks(page, [['Cloud permits', '.recharts-area-area']]);
  await camera.shots(page, 'budget');

  await go(page, 'gate');
  await camera.shots(page, 'gate');
  await go(page, `gate/${encodeURIComponent(verdict)}`);
  const overTime = page.getByRole('heading', { name: 'Minimum over time' });
  await overTime.waitFor();
  await settled(page);
  await assertMarks(page, [['Minimum over time', '.recharts-line-curve']]);
  await page.locator('.gate-detail').scrollIntoViewIfNeeded();
  await camera.themes(page, 'gate-detail');

  await go(page, 'fleet');
  await camera.shots(page, 'fleet');
  await go(page, `fleet/${node}`);
  await settled(page);
  await camera.themes(page, 'fleet-machine');

  await go(page, 'roles');
  await camera.shots(page, 'roles');
  await go(page, 'roles/code-assistant');
  await camera.shot(page, 'roles-edit', 'light');

  await go(page, 'requests');
  await camera.shots(page, 'requests');
  await go(page, `requests/${request}`);
  await settled(page);
  await camera.themes(page, 'requests-trace');

  await go(page, 'keys');
  await camera.shots(page, 'keys');
  await go(page, 'events');
  await camera.shots(page, 'events');
  await go(page, 'settings');
  await camera.shots(page, 'settings');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('work');
  await camera.shot(page, 'palette', 'light', WIDE, 'exact');
  await page.keyboard.press('Escape');
}

/** A refusal in words, where it belongs: a wrong join code is refused by the machine itself. */
async function refusedCode(camera: Camera, fleet: DemoFleet, page: Page): Promise<void> {
  await go(page, 'fleet');
  await page.getByRole('button', { name: 'Add machine' }).click();
  const sheet = page.getByRole('dialog');
  await sheet.getByText('By address').click();
  await sheet.getByRole('textbox', { name: 'Address' }).fill(fleet.machine('studio').agent.listen);
  await sheet.getByLabel('Join code').fill('7K3M-9QXA-1B2C-D4EF');
  await sheet.getByRole('button', { name: 'Pair', exact: true }).click();
  await sheet.getByRole('alert').waitFor();
  await camera.shot(page, 'fleet-refused', 'light', WIDE, 'exact');
  await page.keyboard.press('Escape');
}

/** Somebody else holds the database's write lock. */
async function lockedDatabase(camera: Camera, plane: ControlPlane, page: Page): Promise<void> {
  const database = new Database(path.join(plane.dataDir, 'switchyard.db'));
  database.exec('BEGIN IMMEDIATE');
  try {
    await go(page, 'roles');
    await page.locator('.banner').waitFor();
    await camera.shot(page, 'roles-error', 'light');
  } finally {
    database.exec('ROLLBACK');
    database.close();
  }
}

/** The control plane's process stands still, then is gone. */
async function silence(camera: Camera, plane: ControlPlane, page: Page, unread: string): Promise<void> {
  await go(page, 'overview');
  await page.locator('.banner').waitFor({ state: 'hidden' });
  await settled(page);
  plane.kill('SIGSTOP');
  await page.locator('[data-stale]').first().waitFor();
  await page.waitForTimeout(12_000);
  await camera.themes(page, 'overview-stale');
  plane.kill('SIGKILL');
  await plane.gone;
  await page.locator('.banner').waitFor();
  await go(page, 'fleet');
  await camera.shot(page, 'fleet-stale', 'dark');
  // A request whose story was not read before: nobody is left to tell it.
  await page.evaluate((id) => {
    location.hash = `#/requests/${id}`;
  }, unread);
  await page.getByRole('alert').first().waitFor();
  await camera.themes(page, 'requests-error');
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      out: { type: 'string', default: fileURLToPath(new URL('../../docs/screenshots', import.meta.url)) },
      /** The 5 minutes that the charts show, and a little. */
      seconds: { type: 'string', default: '320' },
    },
  });
  const camera = await Camera.open(values.out);
  const fleet = new DemoFleet();
  let traffic: Traffic | null = null;
  let weather: Weather | null = null;
  try {
    await fleet.start((sentence) => console.log(sentence));
    traffic = new Traffic({
      endpoint: fleet.plane.endpoint,
      keyOf: (project) => fleet.keys.get(project) ?? '',
      random: Math.random,
      onEnd: () => undefined,
    });
    weather = new Weather(fleet, (sentence) => console.log(sentence));
    traffic.start();
    weather.start();
    const enough = performance.now() + Number(values.seconds) * 1000;
    console.log('First run and empty pages…');
    await firstRun(camera);
    await empty(camera);
    console.log('Waiting until the charts are full…');
    await until(() => performance.now() > enough, Number(values.seconds) * 1000 + 10_000);
    const page = await camera.console(fleet.plane, fleet.plane.adminToken, 'overview');
    await pages(camera, fleet, page);
    await refusedCode(camera, fleet, page);
    await lockedDatabase(camera, fleet.plane, page);
    const { requests } = await fleet.operator.get<{ requests: { id: string }[] }>('requests?limit=1');
    await silence(camera, fleet.plane, page, requests[0]?.id ?? '');
    if (camera.complaints.length > 0) throw new Error(`The console complained: ${camera.complaints.join('; ')}`);
    const bytes = camera.taken.reduce((sum, one) => sum + one.bytes, 0);
    for (const one of camera.taken) console.log(`${(one.bytes / 1024).toFixed(0).padStart(5)} kB  ${one.name}`);
    console.log(`${camera.taken.length} pictures, ${(bytes / 1024 / 1024).toFixed(1)} MB`);
  } finally {
    await Promise.all([traffic?.stop(0), weather?.stop()]);
    await camera.close();
    await fleet.stop();
    removeTemporaryFolders();
  }
}

await main();
process.exit(0);
