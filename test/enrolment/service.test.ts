import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import type { NewEvent } from '../../main/domain/events.ts';
import type { NodeId } from '../../main/domain/ids.ts';
import type { EnrolmentDesk, ListenerOptions } from '../../main/enrolment/listener.ts';
import { EnrolmentService } from '../../main/enrolment/service.ts';
import { EnrolmentView } from '../../preload/contract.ts';
import { ManualClock } from '../gateway/manual-clock.ts';
import { placeOf } from './meeting.ts';

const MINUTE = 60_000;
const ipv4 = (address: string, internal = false): NetworkInterfaceInfo => ({
  address,
  netmask: '255.255.255.0',
  family: 'IPv4',
  mac: '02:00:00:00:00:01',
  internal,
  cidr: `${address}/24`,
});
const FINGERPRINT = 'ab'.repeat(32);
const JOIN = { v: 1, port: 7412, joinCode: 'ABCD-EFGH-JKMN-PQRS', fingerprint: FINGERPRINT } as const;
const WISH = { model: 'qwen3:8b', engine: 'ollama', baseWeight: 2, address: null } as const;

/** The service with a clock moved by hand, and addresses that only remember that they were opened. */
function house(options: { files?: boolean; refuse?: () => SwitchyardError | null } = {}) {
  const clock = new ManualClock();
  const events: NewEvent[] = [];
  const opened: (ListenerOptions & { closed: boolean })[] = [];
  const added: string[] = [];
  const weighed: unknown[] = [];
  let pairing = Promise.resolve();
  let chance = 0;
  const service = new EnrolmentService({
    clock,
    randomBytes: (count) => {
      chance += 1;
      return new Uint8Array(count).fill(chance);
    },
    events: { record: (event) => void events.push(event) },
    network: { interfaces: () => ({ eth0: [ipv4('10.0.0.2')] }), defaultAddress: async () => '10.0.0.2' },
    files: async () =>
      options.files === false ? null : { sh: Buffer.from('sh'), ps1: Buffer.from('ps1'), agent: Buffer.from('agent') },
    controlPlane: 'c1',
    add: async (address, joinCode, fingerprint) => {
      added.push(`${address} ${joinCode} ${fingerprint}`);
      await pairing;
      const refused = options.refuse?.() ?? null;
      if (refused) throw refused;
      return 'n1' as NodeId;
    },
    weigh: (...what) => void weighed.push(what),
    open: async (place) => {
      const entry = { ...place, closed: false };
      opened.push(entry);
      return {
        port: 40_000 + opened.length,
        close: () => {
          entry.closed = true;
        },
      };
    },
  });
  const desk = (at = 0) => (opened[at] as ListenerOptions).desk;
  const report = (to: EnrolmentDesk, code: 'system' | 'engine' | 'model', change: object = {}) =>
    to.step({ v: 1, code, state: 'running', percent: null, detail: null, ...change }, '10.0.0.9');
  const state = () => service.list().map((each) => each.state);
  const told = () => events.map(({ says }) => says.code);
  const hold = () => {
    let go = () => {};
    pairing = new Promise((resolve) => {
      go = resolve;
    });
    return go;
  };
  return { clock, events, opened, added, weighed, service, desk, report, state, told, hold };
}

describe('a one-time command', () => {
  it('leads to one address of this computer by a token of 128 bits and the pin of the key there, and is not listed', async () => {
    const { service, opened, desk, told } = house();
    const { commands, enrolment } = await service.create(WISH);
    const { host, port, token, pin } = placeOf(commands.posix);
    expect([host, port, pin]).toEqual(['10.0.0.2', 40_001, opened[0]?.key.pin]);
    expect(Buffer.from(token, 'base64url')).toEqual(Buffer.alloc(16, 1));
    expect(opened[0]?.token).toBe(token);
    expect(commands.powershell).toContain(`'https://10.0.0.2:40001/e/${token}/ps1'`);
    expect(desk().options()).toEqual({ v: 1, model: 'qwen3:8b', engine: 'ollama', controlPlane: 'c1' });
    expect(enrolment).toMatchObject({ state: 'waiting', nodeId: null, model: 'qwen3:8b', baseWeight: 2, steps: [] });
    expect(enrolment.expiresAtMs - enrolment.createdAtMs).toBe(30 * MINUTE);
    expect(JSON.stringify(service.list())).not.toContain(token);
    expect(service.list()).toEqual([EnrolmentView.parse(enrolment)]);
    expect(told()).toEqual(['enrolment_made']);
  });

  it('is refused with what to do: without installer, with a foreign address, and when eight wait already', async () => {
    await expect(house({ files: false }).service.create(WISH)).rejects.toMatchObject({
      code: 'not_ready',
      message: expect.stringContaining('npm run build'),
    });
    const { service, clock } = house();
    await expect(service.create({ ...WISH, address: '10.0.0.3' })).rejects.toMatchObject({
      code: 'invalid_address',
      message: expect.stringContaining('10.0.0.2'),
    });
    const made = await Promise.allSettled(Array.from({ length: 9 }, () => service.create(WISH)));
    const refused = made.filter(({ status }) => status === 'rejected');
    expect(refused).toMatchObject([{ reason: { code: 'too_many_enrolments' } }]);
    clock.advance(30 * MINUTE);
    await expect(service.create(WISH)).resolves.toBeDefined();
  });

  it('is dead 30 minutes after it was made, when nobody has used it', async () => {
    const { service, clock, opened, desk, state, told } = house();
    await service.create(WISH);
    clock.advance(30 * MINUTE - 1);
    expect([desk().alive(), opened[0]?.closed, ...state()]).toEqual([true, false, 'waiting']);
    clock.advance(1);
    expect([desk().alive(), opened[0]?.closed, ...state()]).toEqual([false, true, 'expired']);
    expect(told()).toEqual(['enrolment_made', 'enrolment_expired']);
  });

  it('lives on while the machine reports, 30 minutes from each report and two hours in all', async () => {
    const { service, clock, desk, report, state } = house();
    await service.create(WISH);
    for (const minutes of [29, 58, 87, 116]) {
      clock.advance(29 * MINUTE);
      report(desk(), 'model', { percent: minutes / 2 });
    }
    const [view] = service.list();
    // From 116 min on it would be 146: the two hours end it at 120.
    expect((view?.expiresAtMs ?? 0) - (view?.createdAtMs ?? 0)).toBe(120 * MINUTE);
    expect(view?.steps).toMatchObject([{ code: 'model', sentence: 'Pull the model', percent: 58 }]);
    clock.advance(4 * MINUTE - 1);
    expect(state()).toEqual(['running']);
    clock.advance(1);
    expect([desk().alive(), ...state()]).toEqual([false, 'expired']);
  });

  it('is dead after its time also when this computer has slept', async () => {
    const { service, clock, desk } = house();
    await service.create(WISH);
    const wallMs = clock.wallMs.bind(clock);
    clock.wallMs = () => wallMs() + 31 * MINUTE; // the other clock stood still
    expect(desk().alive()).toBe(false);
    clock.advance(MINUTE);
    expect(service.list()).toMatchObject([{ state: 'expired' }]);
  });

  it('that failed says what to do and can be run again, from whichever step', async () => {
    const { service, desk, report, state, told, events } = house();
    await service.create(WISH);
    report(desk(), 'system', { state: 'done' });
    report(desk(), 'engine', { state: 'done', detail: 'adopted' });
    report(desk(), 'model', { state: 'failed', percent: 12, detail: 'model_failed' });
    report(desk(), 'model', { state: 'failed', percent: 12, detail: 'model_failed' });
    expect(state()).toEqual(['failed']);
    expect(service.list()[0]?.steps).toMatchObject([
      { code: 'system', state: 'done', detail: null },
      { code: 'engine', detail: { code: 'enrol_adopted', sentence: 'The engine that runs there is used.' } },
      { code: 'model', state: 'failed', detail: { code: 'enrol_model_failed' } },
    ]);
    // Once, although it was reported twice.
    expect(told()).toEqual(['enrolment_made', 'enrolment_failed']);
    expect(events[1]?.says.sentence).toMatch(
      /^Adding the machine at 10\.0\.0\.9 failed\. The model could not be pulled/,
    );
    report(desk(), 'system');
    expect(state()).toEqual(['running']);
    expect(service.list()[0]?.steps.map(({ code }) => code)).toEqual(['system', 'engine']);
  });

  it('that failed and was not run again in time is dead, and its steps still say what failed', async () => {
    const { service, clock, desk, report } = house();
    await service.create(WISH);
    report(desk(), 'model', { state: 'failed', detail: 'model_failed' });
    clock.advance(30 * MINUTE);
    expect(desk().alive()).toBe(false);
    expect(service.list()).toMatchObject([
      { state: 'expired', steps: [{ state: 'failed', detail: { code: 'enrol_model_failed' } }] },
    ]);
  });

  it('tells people of five failures and not of the hundredth', async () => {
    const { service, desk, report, told } = house();
    await service.create(WISH);
    for (let each = 0; each < 100; each += 1) {
      report(desk(), 'model');
      report(desk(), 'model', { state: 'failed' });
    }
    expect(told().filter((code) => code === 'enrolment_failed')).toHaveLength(5);
  });
});

describe('the join', () => {
  it('pairs with the address that asks, by its code and its key, sets the weight, and is the last thing the token does', async () => {
    const { service, desk, opened, added, weighed, told, events } = house();
    await service.create(WISH);
    expect(await desk().join(JOIN, '10.0.0.9')).toEqual({ state: 'joined' });
    expect(added).toEqual([`10.0.0.9:7412 ABCD-EFGH-JKMN-PQRS ${FINGERPRINT}`]);
    expect(weighed).toEqual([['n1', '10.0.0.9:7412', 2]]);
    expect(service.list()).toMatchObject([
      { state: 'joined', nodeId: 'n1', steps: [{ code: 'join', state: 'done', detail: null }] },
    ]);
    expect([desk().alive(), opened[0]?.closed]).toEqual([false, true]);
    expect(told()).toEqual(['enrolment_made', 'enrolment_joined']);
    expect(events[1]).toMatchObject({ node: 'n1', says: { sentence: expect.stringContaining('base weight 2') } });
    expect(JSON.stringify([events, service.list()])).not.toContain('ABCD-EFGH');
  });

  it('of a second machine is refused while the first is being paired with', async () => {
    const { service, desk, added, hold } = house();
    await service.create(WISH);
    const go = hold();
    const first = desk().join(JOIN, '10.0.0.9');
    expect(await desk().join(JOIN, '10.0.0.10')).toEqual({ state: 'failed', code: 'node_exists' });
    go();
    expect(await first).toEqual({ state: 'joined' });
    expect(added).toHaveLength(1);
  });

  it('that was refused says why and may be tried again', async () => {
    const answers = [new SwitchyardError('node_unreachable'), new SwitchyardError('join_refused'), null];
    const { service, desk, state, opened, weighed } = house({ refuse: () => answers.shift() ?? null });
    await service.create(WISH);
    expect(await desk().join(JOIN, '10.0.0.9')).toEqual({ state: 'failed', code: 'node_unreachable' });
    expect(service.list()).toMatchObject([
      {
        state: 'failed',
        nodeId: null,
        steps: [{ code: 'join', state: 'failed', detail: { code: 'node_unreachable' } }],
      },
    ]);
    expect(await desk().join(JOIN, '10.0.0.9')).toEqual({ state: 'failed', code: 'join_refused' });
    // What the machine makes of it is no news.
    const after = { v: 1, code: 'join', state: 'failed', percent: null, detail: 'join_failed' } as const;
    desk().step(after, '10.0.0.9');
    expect(service.list()).toMatchObject([{ state: 'failed', steps: [{ detail: { code: 'join_refused' } }] }]);
    desk().step({ ...after, state: 'running', detail: null }, '10.0.0.9');
    expect([desk().alive(), opened[0]?.closed, weighed.length]).toEqual([true, false, 0]);
    expect(await desk().join(JOIN, '10.0.0.9')).toEqual({ state: 'joined' });
    expect(state()).toEqual(['joined']);
  });

  it('under way when the time is over ends as it ends', async () => {
    const { service, clock, desk, state, hold } = house();
    await service.create(WISH);
    const go = hold();
    const joining = desk().join(JOIN, '10.0.0.9');
    clock.advance(3 * 60 * MINUTE);
    expect(state()).toEqual(['running']);
    go();
    expect(await joining).toEqual({ state: 'joined' });
    expect(state()).toEqual(['joined']);
  });
});

describe('an end', () => {
  it('by hand closes the address, says so, and takes it off the list', async () => {
    const { service, desk, opened, told } = house();
    const { enrolment } = await service.create(WISH);
    await service.cancel(enrolment.id);
    expect([desk().alive(), opened[0]?.closed, service.list()]).toEqual([false, true, []]);
    expect(told()).toEqual(['enrolment_made', 'enrolment_withdrawn']);
    await expect(service.cancel(enrolment.id)).rejects.toMatchObject({ code: 'enrolment_not_found' });
  });

  it('by hand waits for a pairing, which stands', async () => {
    const { service, clock, desk, told, hold } = house();
    const { enrolment } = await service.create(WISH);
    const go = hold();
    const joining = desk().join(JOIN, '10.0.0.9');
    const cancelled = service.cancel(enrolment.id);
    go();
    expect(await joining).toEqual({ state: 'joined' });
    await cancelled;
    clock.advance(3 * 60 * MINUTE);
    expect(told()).toEqual(['enrolment_made', 'enrolment_joined']);
  });

  it('of the control plane ends them all, and the events say so', async () => {
    const { service, desk, opened, told } = house();
    await service.create(WISH);
    await service.create(WISH);
    await desk(1).join(JOIN, '10.0.0.9');
    await service.stop();
    expect([desk(0).alive(), ...opened.map(({ closed }) => closed), service.list()]).toEqual([false, true, true, []]);
    expect(told().slice(2)).toEqual(['enrolment_joined', 'enrolment_ended_by_stop']);
  });
});
