import type { Clock } from '../../main/domain/time.ts';
import type { EngineDefinition } from './adapter.ts';
import { llamacppDefinition } from './llamacpp.ts';
import { lmstudioDefinition } from './lmstudio.ts';
import { ollamaDefinition } from './ollama.ts';
import { openaiDefinition } from './openai.ts';
import { teiDefinition } from './tei.ts';
import { tgiDefinition } from './tgi.ts';
import { vllmDefinition } from './vllm.ts';

/**
 * Every kind of engine the agent knows, in probing order: the ones that can be told for certain first, and the generic
 * OpenAI-compatible server, which anything might be, last.
 */
export function engineDefinitions(clock: Clock): readonly EngineDefinition[] {
  return [
    ollamaDefinition(clock),
    llamacppDefinition(clock),
    tgiDefinition(clock),
    teiDefinition(clock),
    vllmDefinition(clock),
    lmstudioDefinition(clock),
    openaiDefinition(clock),
  ];
}
