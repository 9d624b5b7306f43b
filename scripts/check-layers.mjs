// Which room may know which: the import graph of main, agent, preload and renderer against docs/architecture.md.
// Type imports, re-exports, dynamic imports and require count alike, and every rule holds for what a file reaches through
// others, not only for what it names. A finding is the shortest chain of files that leads to the forbidden thing.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { builtinModules } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'vite';

const TREES = ['main', 'agent', 'preload', 'renderer'];
const PURE = ['router', 'gate', 'budget'];
/**
 * Rooms of main by height. `platform` is the outside world behind ports, so no room may name it; files directly in main/
 * wire everything together and stand above all.
 */
const HEIGHT = new Map([
  ['domain', 0],
  ...PURE.map((room) => [room, 1]),
  ...[
    'desktop',
    'gateway',
    'operator',
    'enrolment',
    'dispatch',
    'fleet',
    'discovery',
    'cloud',
    'store',
    'telemetry',
  ].map((room) => [room, 2]),
  ['platform', 3],
  ['', 4],
]);
/** A pure room computes and checks shapes; every other package could do I/O or keep state. */
const PURE_PACKAGES = ['zod'];
/** These measure through ports: no I/O of their own either, but they may hash and wait. */
const GATE_SHELL = /^main\/gate\/(verifier|service)[^/]*\.ts$/;
const GATE_SHELL_PACKAGES = [...PURE_PACKAGES, 'node:crypto', 'node:events', 'node:buffer'];
const FORBIDDEN_GLOBALS = new Set(
  'performance setTimeout setInterval setImmediate process crypto fetch WebSocket require'.split(' '),
);
const FORBIDDEN_MEMBERS = { Date: ['UTC', 'parse', 'prototype'], Math: null };
const builtins = new Set(builtinModules);

/** @returns every source file below `dir`, as paths relative to `root` with forward slashes. */
function filesBelow(root, dir) {
  if (!existsSync(path.join(root, dir))) return [];
  return readdirSync(path.join(root, dir), { withFileTypes: true }).flatMap((entry) => {
    const file = `${dir}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesBelow(root, file);
    return /\.[cm]?tsx?$|\.[cm]?jsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts') ? [file] : [];
  });
}

/** Calls `visit(node, parent, key)` for every node of a syntax tree. */
function walk(node, visit, parent = null, key = '') {
  visit(node, parent, key);
  for (const [name, value] of Object.entries(node)) {
    if (Array.isArray(value)) {
      for (const child of value) if (child && typeof child.type === 'string') walk(child, visit, node, name);
    } else if (value && typeof value.type === 'string') walk(value, visit, node, name);
  }
}

const isText = (node) => node?.type === 'Literal' && typeof node.value === 'string';
const isPure = (file) => room(file) === 'domain' || (PURE.includes(room(file)) && !GATE_SHELL.test(file));

/**
 * Reads one file.
 * @returns its import specifiers, and what it uses that a pure room must not (empty outside pure rooms)
 */
function scan(root, file) {
  const source = readFileSync(path.join(root, file), 'utf8');
  const parsed = parseSync(file, source);
  if (parsed.errors.length > 0) return { specifiers: [], uses: ['syntax that cannot be parsed'] };
  const specifiers = parsed.module.staticImports.map((entry) => entry.moduleRequest.value);
  for (const { entries } of parsed.module.staticExports) {
    for (const entry of entries) if (entry.moduleRequest) specifiers.push(entry.moduleRequest.value);
  }
  const uses = [];
  // Handing the whole tree over costs far more than the module record, so it is done only where the record is not enough.
  if (isPure(file) || /\brequire\b|\bimport\s*\(/.test(source)) {
    const declared = new Set();
    const seen = [];
    walk(parsed.program, (node, parent, key) => {
      if ((node.type === 'ImportExpression' || node.type === 'TSImportType') && isText(node.source)) {
        specifiers.push(node.source.value);
      } else if (node.type === 'ImportExpression') uses.push('import() of a computed name');
      if (node.type === 'CallExpression' && isText(node.arguments[0])) {
        const { callee } = node;
        const name = callee.type === 'MemberExpression' ? callee.object.name : callee.name;
        if (name === 'require') specifiers.push(node.arguments[0].value);
      }
      if (node.type === 'TSExternalModuleReference' && isText(node.expression)) specifiers.push(node.expression.value);
      if (node.type === 'Identifier') noteIdentifier(node, parent, key, declared, seen);
    });
    if (isPure(file)) uses.push(...seen.filter(([name]) => !declared.has(name)).map(([, what]) => what));
  }
  return { specifiers, uses: isPure(file) ? [...new Set(uses)] : [] };
}

/** Sorts an identifier: a binding of this file, or a reference to a global that reads clock, chance or the world. */
function noteIdentifier(node, parent, key, declared, seen) {
  const { name } = node;
  const binds =
    (key === 'id' && !parent.type.startsWith('TS')) || key === 'params' || key === 'local' || key === 'param';
  if (binds) declared.add(name);
  const isName =
    binds ||
    ((key === 'property' || key === 'key') && !parent.computed && !parent.shorthand) ||
    /^TS(?!AsExpression|SatisfiesExpression|NonNullExpression)/.test(parent.type);
  if (isName) return;
  if (FORBIDDEN_GLOBALS.has(name)) seen.push([name, name]);
  else if (name === 'globalThis') seen.push([name, name]);
  else if (name in FORBIDDEN_MEMBERS) {
    const member = parent.type === 'MemberExpression' && key === 'object' && !parent.computed && parent.property.name;
    const constructs = parent.type === 'NewExpression' && key === 'callee' && parent.arguments.length > 0;
    const isInstance = parent.type === 'BinaryExpression' && parent.operator === 'instanceof';
    const allowed = FORBIDDEN_MEMBERS[name];
    const fine = member ? (allowed ? allowed.includes(member) : member !== 'random') : constructs || isInstance;
    if (!fine)
      seen.push([name, member ? `${name}.${member}` : parent.type === 'NewExpression' ? `new ${name}()` : name]);
  }
}

/** @returns the room of a file of main ('' for files directly in main/), or null for other trees. */
function room(file) {
  const parts = file.split('/');
  if (parts[0] !== 'main') return null;
  return parts.length === 2 ? '' : parts[1];
}

/** @returns a file of ours, a package name, or null for what is neither (styles, images, generated code). */
function resolve(root, from, specifier) {
  const bare = specifier.split('?')[0];
  if (!bare.startsWith('.') && !bare.startsWith('/')) {
    if (bare.startsWith('node:') || builtins.has(bare.split('/')[0])) {
      return { name: `node:${bare.replace(/^node:/, '')}`, ours: false };
    }
    const parts = bare.split('/');
    return { name: bare.startsWith('@') ? parts.slice(0, 2).join('/') : parts[0], ours: false };
  }
  const base = path.posix.join(path.posix.dirname(from), bare);
  const stem = base.replace(/\.[cm]?jsx?$/, '');
  const candidates = [base, `${base}.ts`, `${base}.tsx`, `${stem}.ts`, `${stem}.tsx`, `${base}/index.ts`];
  const found = candidates.find((file) => statSync(path.join(root, file), { throwIfNoEntry: false })?.isFile());
  return { name: found ?? base, ours: true };
}

/** @returns file -> { imports: [{name, ours}], uses } for the four trees and whatever of the project they lead to. */
function buildGraph(root) {
  const graph = new Map();
  const queue = TREES.flatMap((tree) => filesBelow(root, tree));
  while (queue.length > 0) {
    const file = queue.pop();
    if (graph.has(file)) continue;
    if (!/\.[cm]?[jt]sx?$/.test(file) || !existsSync(path.join(root, file))) {
      graph.set(file, { imports: [], uses: [] });
      continue;
    }
    const { specifiers, uses } = scan(root, file);
    const imports = [...new Set(specifiers)].map((specifier) => resolve(root, file, specifier));
    graph.set(file, { imports, uses });
    for (const target of imports) if (target.ours) queue.push(target.name);
  }
  return graph;
}

const isIn = (file, ...folders) => folders.some((folder) => file === folder || file.startsWith(`${folder}/`));
const inElectronZone = (file) => file === 'main/index.ts' || isIn(file, 'main/desktop', 'preload');
const packagesOf = (file) =>
  room(file) === 'domain' ? [] : GATE_SHELL.test(file) ? GATE_SHELL_PACKAGES : PURE_PACKAGES;

/** `applies`: where a chain may begin. `forbids(start, target)`: what it must not come to. */
const RULES = [
  {
    name: 'electron is imported only in main/index.ts, main/desktop and preload; nothing else may reach it',
    applies: (file) => !inElectronZone(file),
    forbids: (_start, target) => !target.ours && target.name === 'electron',
  },
  {
    name: 'main imports of agent only agent/wire',
    applies: (file) => isIn(file, 'main'),
    forbids: (_start, target) => target.ours && isIn(target.name, 'agent') && !isIn(target.name, 'agent/wire'),
  },
  {
    // The clock is a type that both processes are handed; a second copy of it would only drift.
    name: 'agent knows nothing of main, preload and renderer, but for the clock',
    applies: (file) => isIn(file, 'agent'),
    forbids: (_start, target) =>
      target.ours && target.name !== 'main/domain/time.ts' && isIn(target.name, 'main', 'preload', 'renderer'),
  },
  {
    name: 'renderer imports preload/contract and nothing else of ours (the vocabulary comes only through it)',
    applies: (file) => isIn(file, 'renderer'),
    forbids: (_start, target, from) =>
      target.ours
        ? !isIn(target.name, 'renderer', 'assets', 'preload/contract.ts', 'preload/contract') &&
          !(isIn(target.name, 'main/domain') && !isIn(from, 'renderer'))
        : target.name.startsWith('node:'),
  },
  {
    name: 'preload imports only itself and main/domain',
    applies: (file) => isIn(file, 'preload'),
    forbids: (_start, target) => target.ours && !isIn(target.name, 'preload', 'main/domain'),
  },
  {
    name: 'main does not import renderer',
    applies: (file) => isIn(file, 'main'),
    forbids: (_start, target) => target.ours && isIn(target.name, 'renderer'),
  },
  {
    name: 'rooms import downwards: desktop, gateway, operator, enrolment, dispatch, fleet, discovery, cloud, store, telemetry -> router, gate, budget -> domain',
    applies: (file) => HEIGHT.has(room(file)),
    forbids: (start, target) =>
      target.ours && HEIGHT.has(room(target.name)) && HEIGHT.get(room(target.name)) > HEIGHT.get(room(start)),
  },
  {
    name: 'pure rooms know no I/O: domain imports nothing, router, gate and budget only zod and domain',
    applies: (file) => room(file) === 'domain' || PURE.includes(room(file)),
    forbids: (start, target) =>
      target.ours
        ? !isIn(target.name, 'main/domain') &&
          (room(start) === 'domain' || !isIn(target.name, ...PURE.map((pure) => `main/${pure}`)))
        : !packagesOf(start).includes(target.name),
    through: true,
  },
];

/** Every shortest chain from a file where the rule applies to something it forbids, one per forbidden import. */
function chainsOf(rule, graph) {
  const found = new Map();
  for (const start of graph.keys()) {
    if (!rule.applies(start)) continue;
    const queue = [[start]];
    const seen = new Set(queue[0]);
    for (let chain = queue.shift(); chain; chain = queue.shift()) {
      const from = chain.at(-1);
      for (const target of graph.get(from).imports) {
        if (rule.forbids(start, target, from)) {
          const key = `${from} ${target.name}`;
          const known = found.get(key);
          if (!known || known.length > chain.length + 1) found.set(key, [...chain, target.name]);
          // A pure room's chain goes on, so that a forbidden third file also says which forbidden package it brings.
          if (!rule.through) continue;
        }
        if (target.ours && !seen.has(target.name)) {
          seen.add(target.name);
          queue.push([...chain, target.name]);
        }
      }
    }
  }
  return [...found.values()];
}

/**
 * @param {string} root folder that holds main, agent, preload and renderer
 * @returns {{ rule: string, chain: string[] }[]} findings; `chain` begins with the offender and ends with what it must not
 *   import or use, which is a file, a package or (`Date.now`) a global
 */
export function checkLayers(root) {
  const graph = buildGraph(root);
  const findings = RULES.flatMap((rule) => chainsOf(rule, graph).map((chain) => ({ rule: rule.name, chain })));
  for (const [file, { uses }] of graph) {
    if (room(file) !== null && !HEIGHT.has(room(file))) {
      findings.push({ rule: 'every folder of main is a room of docs/architecture.md', chain: [file] });
    }
    for (const use of uses) {
      findings.push({ rule: 'pure rooms read no clock, no randomness and no environment', chain: [file, use] });
    }
  }
  return findings;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const findings = checkLayers(path.join(path.dirname(fileURLToPath(import.meta.url)), '..'));
  for (const { rule, chain } of findings) console.error(`${chain.join(' -> ')}\n    ${rule}`);
  if (findings.length > 0) {
    console.error(`check-layers: ${findings.length} forbidden import${findings.length === 1 ? '' : 's'}`);
    process.exitCode = 1;
  }
}
