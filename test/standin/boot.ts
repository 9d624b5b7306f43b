// Entry of the stand-in: electron [-r file]... [--switch[=value]]... <app folder or file> [arguments]
import { readFileSync, statSync } from 'node:fs';
import { open } from 'node:inspector';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { boot } from './electron/app.ts';

interface PackageFile {
  readonly main?: string;
  readonly name?: string;
  readonly productName?: string;
  readonly version?: string;
}

const argv = process.argv.slice(2);
process.argv = [process.argv[0] ?? 'electron', ...argv];
if (argv.includes('--version')) {
  console.log(`v${process.versions.electron}-standin`);
  process.exit(0);
}
const inspect = argv.find((argument) => /^--inspect(=|$)/.test(argument));
if (inspect) open(Number(inspect.split(/[=:]/).at(-1)) || 0, '127.0.0.1');

const required: string[] = [];
const switches: string[] = [];
let target: string | null = null;
for (let at = 0; at < argv.length; at += 1) {
  const argument = argv[at] ?? '';
  if (argument === '-r' || argument === '--require') {
    at += 1;
    required.push(argv[at] ?? '');
  } else if (argument.startsWith('--')) switches.push(argument);
  else target ??= argument;
}
const appPath = path.resolve(target ?? '.');
const isFolder = statSync(appPath).isDirectory();
const packageFile = isFolder
  ? (JSON.parse(readFileSync(path.join(appPath, 'package.json'), 'utf8')) as PackageFile)
  : {};
const entry = isFolder ? path.resolve(appPath, packageFile.main ?? 'index.js') : appPath;
const require = createRequire(path.join(process.cwd(), 'standin.cjs'));

await boot({
  appPath: isFolder ? appPath : path.dirname(appPath),
  name: packageFile.productName ?? packageFile.name ?? 'Electron',
  version: packageFile.version ?? '0.0.0',
  switches,
  load: async () => {
    for (const file of required) require(file);
    await import(pathToFileURL(entry).href);
  },
});
