import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

// `electron`, imported or required, is the stand-in; process.versions tells the version whose API it plays.
const standin = new URL('./electron/index.ts', import.meta.url).href;
const names = new Set(['electron', 'electron/main', 'electron/common']);
registerHooks({
  resolve: (specifier, context, next) =>
    names.has(specifier) ? { url: standin, format: 'module-typescript', shortCircuit: true } : next(specifier, context),
});

const packageFile = new URL('../../node_modules/electron/package.json', import.meta.url);
const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string };
Object.defineProperty(process, 'versions', {
  value: Object.freeze({ ...process.versions, electron: version, chrome: '0.0.0.0' }),
  enumerable: true,
});
Object.assign(process, { type: 'browser', defaultApp: true });
