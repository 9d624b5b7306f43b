import { describeWithRuntime } from '../support/runtime.ts';
import { llamaTools } from './llama.ts';

/**
 * A suite that needs the real server. Where it cannot be had the suite is skipped and its name says why; under
 * `SWITCHYARD_NO_SKIP=1` (continuous integration) that is a failure. Call with `await` at the top of a test file.
 */
export async function describeWithLlama(name: string, body: () => void): Promise<void> {
  const tools = await llamaTools();
  describeWithRuntime(tools.available ? null : tools.reason, name, body);
}
