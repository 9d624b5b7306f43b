import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { said } from '../../main/domain/said.ts';
import type { EnrolmentView } from '../../preload/contract.ts';
import { COMMANDS, enrolment, FAILED_STEPS, NOW } from '../support/console-data.ts';
import { type ConsolePage, type ConsoleRig, openConsole, Refusal, startConsoleRig } from '../support/console-page.ts';
import { fullScript, fullTopics } from '../support/console-script.ts';
import { describeWithChromium } from '../support/runtime.ts';

describeWithChromium('adding a machine by a command, in the console', () => {
  let rig: ConsoleRig;
  let shown: ConsolePage;
  /** What the control plane lists. */
  let listed: EnrolmentView[] = [];
  beforeAll(async () => {
    rig = await startConsoleRig();
  });
  afterEach(async () => {
    expect(shown.complaints).toEqual([]);
    await shown.close();
    listed = [];
  });
  afterAll(async () => {
    await rig?.close();
  });
  const called = (name: string) => shown.calls.filter((call) => call.name === name).map((call) => call.input);
  const open = async (locale = 'en-US', create = () => ({ enrolment: enrolment(), commands: COMMANDS })) => {
    shown = await openConsole(rig, {
      script: fullScript({
        'enrolments.create': () => {
          const made = create();
          listed = [made.enrolment];
          return made;
        },
        'enrolments.list': () => ({ enrolments: listed }),
        'enrolments.cancel': () => {
          listed = [];
          return { done: true };
        },
      }),
      topics: fullTopics(),
      nowMs: NOW,
      hash: '#/fleet',
      context: { locale },
    });
    const { page } = shown;
    await page.getByRole('button', { name: locale === 'fr-FR' ? 'Ajouter une machine' : 'Add machine' }).click();
    const sheet = page.getByRole('dialog');
    await sheet.locator('.segments label').nth(2).click();
    return { page, sheet };
  };

  it('the command is shown with the time that is left, follows the machine step by step, and becomes "joined" by itself', async () => {
    const { page, sheet } = await open();
    await sheet.getByLabel('Model to pull').fill('qwen3:8b');
    await sheet.getByLabel('Base weight, 0.1 to 10').fill('2.5');
    await sheet.getByRole('button', { name: 'Make the command' }).click();
    await sheet.getByText(COMMANDS.posix).waitFor();
    expect(called('enrolments.create')).toEqual([{ model: 'qwen3:8b', engine: 'ollama', baseWeight: 2.5 }]);
    await sheet.getByText('waiting for the machine').waitFor();
    await sheet.getByText(/^(30|29) min left$/).waitFor();
    await page.clock.fastForward(10 * 60_000);
    await sheet.getByText(/^(20|19) min left$/).waitFor();

    const step = { code: 'model', sentence: said('enrol_model').sentence, state: 'running' as const, detail: null };
    listed = [enrolment({ state: 'running', steps: [{ ...step, percent: 42, atMs: NOW }] })];
    await sheet.getByText('installing').waitFor();
    await sheet.getByRole('listitem').filter({ hasText: 'Pull the model' }).getByText('42').waitFor();

    listed = [enrolment({ state: 'failed', steps: FAILED_STEPS })];
    await sheet.getByRole('alert').getByText('run the same command again').waitFor();
    await sheet.getByRole('listitem').filter({ hasText: 'adopt the engine' }).getByText('is used').waitFor();
    // It can be run again, so it is still there.
    expect(await sheet.getByText(COMMANDS.posix).count()).toBe(1);

    listed = [enrolment({ state: 'joined', nodeId: 'n9', steps: [] })];
    await sheet.locator('.status.ok', { hasText: 'joined' }).waitFor();
    await expect.poll(() => page.content()).toContain('The machine has joined');
    expect(await sheet.getByText(COMMANDS.posix).count()).toBe(0);
    expect(await sheet.getByRole('alert').count()).toBe(0);
    await sheet.getByRole('button', { name: 'Make another command' }).click();
    await sheet.getByLabel('Model to pull').waitFor();
  });

  it('a command can be withdrawn where it was made, and later by whoever does not have it any more', async () => {
    const { page, sheet } = await open();
    await sheet.getByRole('button', { name: 'Make the command' }).click();
    await sheet.getByRole('button', { name: 'Withdraw' }).click();
    await expect.poll(() => called('enrolments.cancel')).toEqual([{ id: 'e1' }]);
    await sheet.getByRole('button', { name: 'Make the command' }).waitFor();

    await sheet.getByRole('button', { name: 'Make the command' }).click();
    await sheet.getByText(COMMANDS.posix).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Add machine' }).click();
    await sheet.locator('.segments label').nth(2).click();
    const underway = sheet.getByRole('region', { name: 'Being added' });
    await underway.getByText('qwen3:8b').waitFor();
    expect(await page.content()).not.toContain('pinnedpubkey');
    await underway.getByRole('button', { name: 'Withdraw' }).click();
    await underway.waitFor({ state: 'detached' });
  });

  it('a refusal stays in the form, and the address of this computer can be given', async () => {
    const { sheet } = await open('en-US', () => {
      throw new Refusal('too_many_enrolments');
    });
    await sheet.getByLabel('Address of this computer').fill(' 10.0.0.2 ');
    await sheet.getByLabel('Engine').selectOption('');
    await sheet.getByRole('button', { name: 'Make the command' }).click();
    await sheet.getByText('Eight machines are being added already').waitFor();
    expect(called('enrolments.create')).toEqual([{ model: null, engine: null, baseWeight: 1, address: '10.0.0.2' }]);
  });
});
