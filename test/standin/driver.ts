import { createRequire } from 'node:module';
import path from 'node:path';
import type { ElectronApplication, Page } from 'playwright-core';
import type { Answer, ConsoleBridge } from '../../preload/contract.ts';
import type { __standin } from './electron/state.ts';

export type Controls = typeof __standin;
type WithControls = { readonly __standin: Controls };
type WithBridge = { readonly switchyard: ConsoleBridge };

/** Reads or drives the stand-in. The function travels as text: it may use nothing of its file. */
export const controls = <Value>(app: ElectronApplication, read: (standin: Controls) => Value): Promise<Value> =>
  app.evaluate(
    (electron, source) =>
      new Function('standin', `return (${source})(standin)`)((electron as never as WithControls).__standin),
    String(read),
  ) as Promise<Value>;

/** One operation through the bridge of the window. */
export const call = (page: Page, name: string, input: unknown = {}) =>
  page.evaluate(
    ([operation, given]) => (globalThis as unknown as WithBridge).switchyard.call(operation as string, given),
    [name, input],
  ) as Promise<Answer>;

export const bridgeKeys = (page: Page): Promise<string[]> =>
  page.evaluate(() => Object.keys((globalThis as unknown as WithBridge).switchyard).sort());

/** One column of the first row that a query finds in the desktop's database, read past the app; undefined when there is none. */
export function stored(folder: string, query: string): unknown {
  const Database = createRequire(import.meta.url)('better-sqlite3') as new (
    file: string,
    options: object,
  ) => { prepare(text: string): { pluck(): { get(): unknown } }; close(): void };
  const database = new Database(path.join(folder, 'data/switchyard.db'), { readonly: true });
  try {
    return database.prepare(query).pluck().get();
  } finally {
    database.close();
  }
}
