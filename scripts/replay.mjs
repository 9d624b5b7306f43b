// `npm run replay -- FILE` (or `-` for stdin): takes an answer of GET /admin/requests/<id> and makes each of its choices again
// with the router's pure core. Exits 1 when one differs.
import { readFileSync } from 'node:fs';

const { replay } = await import(new URL('../main/router/replay.ts', import.meta.url).href);
const [file] = process.argv.slice(2);
if (!file) {
  console.error('npm run replay -- FILE   (a saved answer of GET /admin/requests/<id>, or - for stdin)');
  process.exit(2);
}
let saved;
try {
  saved = JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'));
} catch (error) {
  console.error(`${file} cannot be read as a saved answer: ${error.message}`);
  process.exit(2);
}
const { replay: choices } = saved;
if (!choices) {
  console.error(
    'This request was never dispatched, or its choices were too large to keep: there is nothing to replay.',
  );
  process.exit(2);
}
let differing = 0;
for (const [at, choice] of JSON.parse(choices).entries()) {
  const { provider } = replay(choice);
  const same = provider === choice.picked;
  if (!same) differing += 1;
  console.log(`${at + 1}. ${choice.picked}${same ? '' : `   REPLAYED: ${provider}`}`);
}
console.log(differing === 0 ? 'Every choice is the same.' : `${differing} choices differ.`);
process.exit(differing === 0 ? 0 : 1);
