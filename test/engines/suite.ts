import { describe, it } from 'vitest';
import { type LlamaTools, llamaTools } from './llama.ts';

/**
 * A suite that needs the real server. Where it cannot be had the suite is skipped and its name says why; under
 * `SWITCHYARD_NO_SKIP=1` (continuous integration) that is a failure. Call with `await` at the top of a test file.
 */
export async function describeWithLlama(name: string, body: () => void): Promise<void> {
  const tools: LlamaTools = await llamaTools();
  if (tools.available) {
    describe(name, body);
    return;
  }
  if (process.env.SWITCHYARD_NO_SKIP === '1') {
    describe(name, () => {
      it('has a real llama.cpp server to run against', () => {
        throw new Error(tools.reason);
      });
    });
    return;
  }
  describe.skip(`${name} (skipped: ${tools.reason})`, body);
}
