import type { EngineReport } from '../../agent/wire/control.ts';
import type { NodeId } from '../domain/ids.ts';

export interface ProbedEngine {
  readonly slotPool: string;
  /** It answered a new probe, or is out of reach. */
  readonly ok: boolean;
}

/** No agent probes these: they live where it lives, and what they call is no machine. They are back when it is. */
const UNPROBED: readonly EngineReport['kind'][] = ['openrouter', 'builtin'];

/** Tells from heartbeats which engines were looked at anew: only that lets the router touch again one that fell silent. */
export class ProbeWatch {
  readonly #answered = new Map<string, number>();
  /** Engines that are not probed, of nodes that were silent since. */
  readonly #away = new Set<string>();

  /**
   * @param pulls the node is heard of and takes work
   * @returns slot pools whose engine has answered a probe since the last call, or is back with its node (`true`), or is out of reach
   * (`false`).
   */
  look(node: NodeId, pulls: boolean, engines: readonly EngineReport[]): readonly ProbedEngine[] {
    return engines.flatMap(({ engine, kind, state, probesAnswered }): readonly ProbedEngine[] => {
      const slotPool = `${node}/${engine}`;
      const isUnprobed = UNPROBED.includes(kind);
      if (isUnprobed && !pulls) this.#away.add(slotPool);
      const before = this.#answered.get(slotPool);
      this.#answered.set(slotPool, probesAnswered);
      if (state === 'unreachable' || state === 'error') return [{ slotPool, ok: false }];
      if (isUnprobed) return pulls && state === 'ready' && this.#away.delete(slotPool) ? [{ slotPool, ok: true }] : [];
      // An agent that restarted counts from zero again.
      const isNew = before !== undefined && probesAnswered !== before;
      return isNew && state === 'ready' ? [{ slotPool, ok: true }] : [];
    });
  }
}
