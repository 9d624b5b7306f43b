import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { checkLayers } from '../../scripts/check-layers.mjs';

let root = '';
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Writes a small project and returns its findings as `a -> b -> c`. */
function chainsIn(files: Readonly<Record<string, string>>): string[] {
  root = mkdtempSync(path.join(tmpdir(), 'layers-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), text);
  }
  return checkLayers(root).map((finding) => finding.chain.join(' -> '));
}

const CLEAN = {
  'main/domain/roles.ts': "export const ROLES = ['embedding'] as const;",
  'main/router/core.ts': "import { z } from 'zod';\nimport { ROLES } from '../domain/roles.ts';\nexport { ROLES, z };",
  'main/dispatch/shell.ts':
    "import '../router/core.ts';\nimport type { Frame } from '../../agent/wire/frame.ts';\nexport type F = Frame;",
  'main/desktop/tray.ts': "import { Tray } from 'electron';\nexport { Tray };",
  'main/control-plane.ts': "export * from './dispatch/shell.ts';",
  'main/headless.ts': "import './control-plane.ts';",
  'main/index.ts': "import './control-plane.ts';\nimport './desktop/tray.ts';",
  'agent/wire/frame.ts': 'export interface Frame { readonly stream: number }',
  'agent/index.ts': "import { createServer } from 'node:https';\nimport './wire/frame.ts';\nexport { createServer };",
  'preload/contract.ts': "import type { ROLES } from '../main/domain/roles.ts';\nexport type R = typeof ROLES;",
  'renderer/app.tsx':
    "import './app.css';\nimport type { R } from '../preload/contract.ts';\nexport const A = (r: R) => <p>Don't {r}</p>;",
  'renderer/app.css': '',
};

describe('the layer check', () => {
  it('passes this project', () => {
    expect(checkLayers(fileURLToPath(new URL('../..', import.meta.url)))).toEqual([]);
  });

  it('passes a small project that keeps to its rooms', () => {
    expect(chainsIn(CLEAN)).toEqual([]);
  });

  it('finds a planted direct import', () => {
    expect(chainsIn({ ...CLEAN, 'main/router/bad.ts': "import { readFileSync } from 'node:fs';" })).toEqual([
      'main/router/bad.ts -> node:fs',
    ]);
  });

  it('finds one planted through a third file, with the chain', () => {
    const chains = chainsIn({
      ...CLEAN,
      'main/control-plane.ts': "export * from './dispatch/shell.ts';\nexport * from './platform.ts';",
      'main/platform.ts': "export { Tray } from './desktop/tray.ts';",
    });
    // control-plane and headless reach electron too; the shortest chain to the forbidden import is shown.
    expect(chains).toEqual(['main/platform.ts -> main/desktop/tray.ts -> electron']);
  });

  it('finds a pure room that reaches I/O through a file outside every room', () => {
    const chains = chainsIn({
      ...CLEAN,
      'main/domain/roles.ts': "export * from '../../shared/names.ts';",
      'shared/names.ts': "import { hostname } from 'node:os';\nexport const ROLES = [hostname()];",
    });
    expect(chains).toContain('main/domain/roles.ts -> shared/names.ts -> node:os');
    expect(chains).toContain('main/domain/roles.ts -> shared/names.ts');
  });

  it.each([
    ['a type import', 'main/domain/x.ts', "import type { WebSocket } from 'ws';\nexport type W = WebSocket;", 'ws'],
    ['a re-export', 'main/budget/x.ts', "export { request } from 'undici';", 'undici'],
    ['a dynamic import', 'main/gate/x.ts', "export const load = () => import('better-sqlite3');", 'better-sqlite3'],
    ['an import type', 'main/router/x.ts', "export type P = import('node:path').ParsedPath;", 'node:path'],
    ['require', 'agent/x.ts', "const e = require('electron');\nexport { e };", 'electron'],
    ['a built-in without its prefix', 'main/domain/x.ts', "import 'fs';", 'node:fs'],
    ['an upper room', 'main/gate/x.ts', "import '../dispatch/shell.ts';", 'main/dispatch/shell.ts'],
    ['a pure room from the vocabulary', 'main/domain/x.ts', "import '../router/core.ts';", 'main/router/core.ts'],
    ['the composition root', 'main/fleet/x.ts', "import '../control-plane.ts';", 'main/control-plane.ts'],
    [
      'the platform, which only the composition root hands out',
      'main/fleet/x.ts',
      "import '../platform/clock.ts';",
      'main/platform/clock.ts',
    ],
    ['more of the agent than its wire', 'main/fleet/x.ts', "import '../../agent/index.ts';", 'agent/index.ts'],
    ['main from the agent', 'agent/x.ts', "import '../main/domain/roles.ts';", 'main/domain/roles.ts'],
    ['the vocabulary from the renderer', 'renderer/x.ts', "import '../main/domain/roles.ts';", 'main/domain/roles.ts'],
    ['Node from the renderer', 'renderer/x.ts', "import 'node:fs';", 'node:fs'],
    ['electron in a service', 'main/fleet/x.ts', "import { powerMonitor } from 'electron/main';", 'electron'],
  ])('finds %s', (_what, file, text, target) => {
    expect(chainsIn({ ...CLEAN, [file]: text })).toContain(`${file} -> ${target}`);
  });

  it('finds an agent part that the wire drags into main', () => {
    const chains = chainsIn({
      ...CLEAN,
      'agent/wire/frame.ts': "export * from '../session.ts';",
      'agent/session.ts': 'export interface Frame { readonly stream: number }',
    });
    expect(chains).toContain('main/dispatch/shell.ts -> agent/wire/frame.ts -> agent/session.ts');
  });

  it.each([
    ['Date.now()', 'Date.now'],
    ['new Date()', 'new Date()'],
    ['performance.now()', 'performance'],
    ['Math.random()', 'Math.random'],
    ['setTimeout(() => 1, 5)', 'setTimeout'],
    ['setInterval(() => 1, 5)', 'setInterval'],
    ['process.env.HOME', 'process'],
    ['globalThis.fetch', 'globalThis'],
  ])('finds a pure room that reads %s', (expression, use) => {
    expect(chainsIn({ 'main/budget/x.ts': `export const x = ${expression};` })).toEqual([`main/budget/x.ts -> ${use}`]);
  });

  it('leaves alone names that only look alike: strings, comments, members, parameters, dates of a given time', () => {
    const text = `
      // Date.now() and setTimeout
      export const words = 'import "node:fs"; Math.random()';
      export const day = (atMs: number) => new Date(atMs).toISOString() + Date.UTC(2026, 0, 1);
      export const wait = (clock: { setTimeout(ms: number): void }) => clock.setTimeout(Math.floor(1.5));
      export const run = (process: { readonly id: string }) => process.id;
      export interface Times { readonly performance: number; readonly at: Date }`;
    expect(chainsIn({ 'main/budget/x.ts': text })).toEqual([]);
  });

  it('asks for a place in the plan when main gets a new folder', () => {
    expect(chainsIn({ 'main/helpers/x.ts': 'export const x = 1;' })).toEqual(['main/helpers/x.ts']);
  });
});
