import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const run = promisify(execFile);
const MODULE = new URL('../../agent/frugality.ts', import.meta.url).href;

/** MiB of young generation that a process has taken after it has made garbage for a while. */
async function youngMiB(limit: boolean): Promise<number> {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8';
    ${limit ? `(await import(${JSON.stringify(MODULE)})).limitYoungGeneration();` : ''}
    let most = 0;
    for (let round = 0; round < 30; round++) {
      const kept = Array.from({ length: 200000 }, (_, at) => ({ at, text: 'x' + at }));
      const { physical_space_size: bytes } = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
      most = Math.max(most, bytes, kept.length);
    }
    console.log(most / 1048576);`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program]);
  return Number(stdout);
}

describe('the young generation of the heap', () => {
  it('stays as small as it began, where it would grow', async () => {
    const [limited, free] = await Promise.all([youngMiB(true), youngMiB(false)]);
    expect(free).toBeGreaterThan(16);
    expect(limited).toBeLessThan(8);
  });
});
