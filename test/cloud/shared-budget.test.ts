import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BudgetService } from '../../main/cloud/budget-service.ts';
import { failedOutcome, succeededOutcome } from '../../main/cloud/outcome.ts';
import type { NodeId, ProjectId } from '../../main/domain/ids.ts';
import { Bench, realClock, type TestCall } from '../agent-cloud/driver.ts';
import { ask } from '../budget/driver.ts';
import { seeded } from '../budget/simulation.ts';
import { OpenRouterStandIn } from '../engines/openrouter.ts';

/** Three agents with one key in front of one account, over real sockets; the stand-in's own books are the judge. */
describe('three agents, one budget', () => {
  const standIn = new OpenRouterStandIn();
  const agents: Bench[] = [];
  let wake = () => {};
  const service = new BudgetService({
    clock: realClock,
    random: seeded(5),
    store: { load: () => null, save: () => undefined },
    onChange: () => wake(),
  });

  beforeAll(async () => {
    for (let index = 0; index < 3; index++) {
      const bench = await Bench.start({ standIn });
      await bench.ready();
      agents.push(bench);
    }
    service.start();
  });
  afterAll(async () => {
    service.stop();
    for (const bench of agents) bench.engine.stop();
    await standIn.stop();
  });

  it('never exceed it together, cancelled calls included, and give every permit back', {
    timeout: 60_000,
  }, async () => {
    const random = seeded(7);
    service.setOverride(6);
    standIn.account.settings.concurrency = 6;
    standIn.latencyMs = 30;
    standIn.tokenMs = 1;
    const total = 240;
    let started = 0;
    let over = 0;
    const seen = new Map(agents.map((bench) => [bench, bench.sent.length]));

    const start = () => {
      const bench = agents[started % 3];
      if (bench === undefined) return false;
      const node = `n${started % 3}` as NodeId;
      const project = (started % 2 === 0 ? 'A' : 'B') as ProjectId;
      const embeds = started % 4 === 0;
      const wanted = ask(`c${started}`, { agent: node, project, role: embeds ? 'embedding' : 'code-assistant' });
      const decision = service.budget.acquire(wanted, realClock.nowMs());
      if (!decision.granted) {
        service.budget.withdraw(project, wanted.id);
        return false;
      }
      started++;
      const { permit } = decision;
      const messages = [{ role: 'user', content: 'say 20 words' }];
      const call: TestCall = embeds
        ? bench.embed(['text'], 'nebius', {
            cloud: bench.cloud('embedding', { permit: permit.id, pin: 'only=nebius;quantizations=' }),
          })
        : bench.chat(
            { messages, stream: true },
            { stream: true, cloud: bench.cloud('code-assistant', { permit: permit.id }) },
          );
      const cancels = random() < 0.3;
      if (cancels) {
        setTimeout(
          () => {
            if (call.trailers !== null || call.failure !== null) return;
            call.abort.abort();
            service.cancelled(permit, () => {
              over++;
              wake();
            });
          },
          5 + random() * 40,
        );
      }
      void call.over.then(() => {
        if (call.signal.aborted) return;
        over++;
        if (call.failure !== null) service.ended(permit, failedOutcome(call.failure));
        else service.ended(permit, succeededOutcome(call.trailers?.usage ?? null, call.trailers?.engineMs ?? 0));
      });
      service.touched();
      return true;
    };

    wake = () => {
      while (started < total && start());
    };
    wake();
    while (over < total) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      for (const [at, bench] of agents.entries()) {
        for (const { message } of bench.sent.slice(seen.get(bench)))
          if (message.t === 'cloud-ended') service.onEnded(`n${at}` as NodeId, message);
        seen.set(bench, bench.sent.length);
      }
      wake();
    }
    const calls = standIn.ledger.filter((entry) => entry.status !== 0);
    expect(standIn.account.mostRunning).toBeLessThanOrEqual(6);
    expect(standIn.account.mostRunning).toBeGreaterThanOrEqual(5);
    expect(calls.filter((entry) => entry.status === 429)).toEqual([]);
    expect(calls.filter((entry) => entry.aborted).length).toBeGreaterThan(5);
    expect(service.snapshot()).toMatchObject({ inFlight: 0, cuts: 0, projects: [] });
    expect(standIn.account.running).toBe(0);
  });
});
