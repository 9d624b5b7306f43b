// Writes the table of docs/errors.md from main/domain/errors.ts: run it after adding a code. A test fails when they differ.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ERRORS } from '../main/domain/errors.ts';

const file = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', 'docs', 'errors.md');
const rows = Object.entries(ERRORS).map(
  ([code, { status, type, sentence }]) => `| \`${code}\` | ${status} | ${type} | ${sentence.replaceAll('|', '\\|')} |`,
);
const table = ['| code | HTTP | type | what it means, and what to do |', '|---|---|---|---|', ...rows].join('\n');
const text = readFileSync(file, 'utf8');
const start = text.indexOf('| code |');
const end = text.indexOf('\n\n', start);
writeFileSync(file, `${text.slice(0, start)}${table}${end < 0 ? '\n' : text.slice(end)}`);
