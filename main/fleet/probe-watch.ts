import type { EngineReport } from '../../agent/wire/control.ts';
import type { NodeId } from '../domain/ids.ts';

export interface ProbedEngine {
  readonly slotPool: string;
  /** It answered a new probe, or is out of reach. */
  readonly ok: boolean;
}

/** Tells from heartbeats which engines were looked at anew: only that lets the router touch again one that fell silent. */
export class ProbeWatch {
  readonly #answered = new Map<string, number>();

  /** @returns slot pools whose engine has answered a probe since the last call (`true`), or is out of reach (`false`). */
  look(node: NodeId, engines: readonly EngineReport[]): readonly ProbedEngine[] {
    return engines.flatMap(({ engine, state, probesAnswered }): readonly ProbedEngine[] => {
      const slotPool = `${node}/${engine}`;
      const before = this.#answered.get(slotPool);
      this.#answered.set(slotPool, probesAnswered);
      if (state === 'unreachable' || state === 'error') return [{ slotPool, ok: false }];
      // An agent that restarted counts from zero again.
      const isNew = before !== undefined && probesAnswered !== before;
      return isNew && state === 'ready' ? [{ slotPool, ok: true }] : [];
    });
  }
}
