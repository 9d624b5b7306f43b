import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { nodeAgentProcess } from '../../main/platform/agent-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'switchyard-agent-process-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the agent that a control plane starts under Node', () => {
  it('has its heap and its allocator limited, and sees no secret of its parent', async () => {
    const entry = join(folder, 'entry.mjs');
    writeFileSync(entry, 'console.log(JSON.stringify({ flags: process.execArgv, env: process.env }));');
    process.env.SWITCHYARD_TEST_SECRET = 'canary';
    const line = await new Promise<string>((resolve, reject) => {
      const start = nodeAgentProcess({ entry, args: [], onLog: reject });
      start({ onLine: resolve, onExit: () => undefined });
    }).finally(() => {
      delete process.env.SWITCHYARD_TEST_SECRET;
    });
    const { flags, env } = JSON.parse(line) as { flags: string[]; env: Record<string, string> };
    expect(flags).toEqual(['--disable-sigusr1', '--report-exclude-env', '--max-semi-space-size=8']);
    expect(env).toMatchObject({ MALLOC_ARENA_MAX: '2' });
    expect(line).not.toContain('canary');
  });
});
