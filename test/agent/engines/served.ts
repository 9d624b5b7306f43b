import { vi } from 'vitest';
import { createAgentClock } from '../../../agent/clock.ts';
import { parseEngineAddress } from '../../../agent/engines/address.ts';
import type { Aliases } from '../../../agent/engines/aliases.ts';
import { engineDefinitions } from '../../../agent/engines/definitions.ts';
import { EngineFleet } from '../../../agent/engines/fleet.ts';
import { createProcessMarks, type ProcessMarks } from '../../../agent/engines/process-mark.ts';
import { EngineReport, type ModelReport } from '../../../agent/wire/control.ts';
import type { RecordedCall } from '../recorded-call.ts';

const clock = createAgentClock();

/** An engine behind the agent's own fleet, in this process. */
export interface Served {
  readonly fleet: EngineFleet;
  report(): EngineReport;
  model(): ModelReport;
  place(): { readonly engine: string; readonly model: string };
  run<C extends RecordedCall>(call: C): Promise<C>;
}

export interface ServeOptions {
  readonly aliases?: Aliases;
  readonly marks?: ProcessMarks;
}

/** Resolves when the engine is ready. Stop `fleet`. */
export async function serve(url: string, options: ServeOptions = {}): Promise<Served> {
  const fleet = new EngineFleet({
    clock,
    marks: options.marks ?? createProcessMarks(),
    definitions: engineDefinitions(clock),
    named: [parseEngineAddress(url)],
    builtIn: [],
    ports: [],
    ...(options.aliases === undefined ? {} : { aliases: options.aliases }),
    onChange: () => undefined,
  });
  fleet.start();
  const report = () => EngineReport.parse(fleet.reports()[0]);
  await vi.waitUntil(() => report().state === 'ready', { timeout: 15_000, interval: 10 });
  const model = () => {
    const [first] = report().models;
    if (first === undefined) throw new Error('no model');
    return first;
  };
  return {
    fleet,
    report,
    model,
    place: () => ({ engine: report().engine, model: model().model }),
    run: async (call) => {
      fleet.serve(call);
      await call.over;
      return call;
    },
  };
}
