import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { CHANNELS, isOperationName, OPERATIONS, TOPIC_NAMES, TOPICS } from '../../preload/contract.ts';

/** Every member name of a schema as `a.b[].c`. */
function members(schema: unknown, path = ''): string[] {
  const json = schema as {
    properties?: Record<string, unknown>;
    items?: unknown;
    anyOf?: unknown[];
    oneOf?: unknown[];
  };
  const own = Object.entries(json.properties ?? {}).flatMap(([name, inner]) => {
    const at = path === '' ? name : `${path}.${name}`;
    return [at, ...members(inner, at)];
  });
  const items = json.items === undefined ? [] : members(json.items, `${path}[]`);
  const variants = [...(json.anyOf ?? []), ...(json.oneOf ?? [])].flatMap((variant) => members(variant, path));
  return [...own, ...items, ...variants];
}

const shape = (schema: z.ZodType, io: 'input' | 'output') => z.toJSONSchema(schema, { io, unrepresentable: 'any' });
const SECRET = /secret|token$|password|passphrase|credential|api_?key|bearer|joinCode|nodeKey|privateKey|hash|cipher/i;

describe('the contract', () => {
  it('answers no secret except the one that keys.create shows once', () => {
    const found = Object.entries(OPERATIONS).flatMap(([name, operation]) =>
      members(shape(operation.output, 'output'))
        .filter((member) => SECRET.test(member.split('.').at(-1) ?? ''))
        .map((member) => `${name}: ${member}`),
    );
    expect(found).toEqual(['keys.create: secret']);
  });

  it('broadcasts no secret', () => {
    const found = TOPIC_NAMES.flatMap((topic) =>
      members(shape(TOPICS[topic].schema, 'output')).filter((member) => SECRET.test(member.split('.').at(-1) ?? '')),
    );
    expect(found).toEqual([]);
  });

  it('has no operation that takes the cloud key: only bytes may carry it', () => {
    const takes = Object.entries(OPERATIONS).flatMap(([name, operation]) =>
      members(shape(operation.input, 'input')).map((member) => `${name}: ${member}`),
    );
    expect(takes.filter((member) => SECRET.test(member))).toEqual(['nodes.add: joinCode']);
    expect(takes.filter((member) => /^cloud\./.test(member))).toEqual(['cloud.forget: nodeIds']);
  });

  it('refuses members that no operation knows', () => {
    for (const [name, operation] of Object.entries(OPERATIONS)) {
      const parsed = operation.input.safeParse({ id: 'embedding', 'no-such-member': 1 });
      expect(parsed.success, name).toBe(false);
    }
  });

  it('knows its own names and not those of Object.prototype', () => {
    expect(isOperationName('nodes.list')).toBe(true);
    expect(isOperationName('constructor')).toBe(false);
    expect(isOperationName('__proto__')).toBe(false);
  });

  it('bounds what an override and a threshold may be', () => {
    const override = OPERATIONS['budget.set'].input;
    expect(override.safeParse({ override: 256 }).success).toBe(true);
    expect(override.safeParse({ override: 9999 }).success).toBe(false);
    expect(override.safeParse({ override: 0 }).success).toBe(false);
    const role = OPERATIONS['roles.update'].input;
    expect(role.safeParse({ id: 'embedding', patch: { threshold: 0.995 } }).success).toBe(true);
    expect(role.safeParse({ id: 'embedding', patch: { threshold: 0.98 } }).success).toBe(false);
  });

  it('uses no `any` and names channels in one file only', () => {
    const contract = ['preload/contract.ts', ...globSync('preload/contract/*.ts')];
    for (const file of contract) expect(readFileSync(file, 'utf8'), file).not.toMatch(/\bany\b(?! )|: any\b|as any/);
    const others = globSync('{main,preload,renderer}/**/*.{ts,tsx}').filter((file) => !file.endsWith('channels.ts'));
    const channel = new RegExp(Object.values(CHANNELS).join('|'));
    for (const file of others) expect(readFileSync(file, 'utf8'), file).not.toMatch(channel);
  });
});
