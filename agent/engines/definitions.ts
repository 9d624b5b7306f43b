import type { Clock } from '../../main/domain/time.ts';
import type { EngineDefinition } from './adapter.ts';
import { llamacppDefinition } from './llamacpp.ts';

/**
 * Every kind of engine the agent knows, in probing order: the ones that can be told for certain first, and the generic
 * OpenAI-compatible server, which anything might be, last.
 */
export function engineDefinitions(clock: Clock): readonly EngineDefinition[] {
  return [llamacppDefinition(clock)];
}
