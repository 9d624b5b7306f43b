import { type ChildProcess, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Clock } from '../../main/domain/time.ts';
import { childEnvironment } from '../child-environment.ts';
import { type GpuVendor, label, shortPci } from './source.ts';

/** A graphics adapter as the system lists it: who it is, not what it does. */
export interface InventoryGpu {
  readonly vendor: GpuVendor;
  readonly name: string | null;
  readonly pci: string | null;
}

const text = z.string().max(512).optional().catch(undefined);
const Controller = z.object({ vendor: text, model: text, busAddress: text });
/** What `inventory-worker.ts` sends. */
const Inventory = z.object({ controllers: z.array(Controller).max(64) });

/** Makers of what can run a model. Adapters of virtual machines, consoles and remote desktops are no GPUs to us. */
const VENDORS: readonly (readonly [RegExp, GpuVendor])[] = [
  [/nvidia/i, 'nvidia'],
  [/advanced micro devices|\bamd\b|\bati\b|radeon/i, 'amd'],
  [/intel/i, 'intel'],
  [/apple/i, 'apple'],
  [/qualcomm|moore threads/i, 'other'],
];

/** @returns the adapters worth showing; an empty list when `found` is not an inventory. */
export function readInventory(found: unknown): readonly InventoryGpu[] {
  const parsed = Inventory.safeParse(found);
  if (!parsed.success) return [];
  return parsed.data.controllers.flatMap(({ vendor, model, busAddress }) => {
    const maker = VENDORS.find(([pattern]) => pattern.test(`${vendor ?? ''} ${model ?? ''}`))?.[1];
    if (maker === undefined) return [];
    return [{ vendor: maker, name: label(model), pci: shortPci(busAddress ?? '') }];
  });
}

/** Starts the inventory's process; null: there is none here. */
export type StartInventory = () => ChildProcess | null;

const PATIENCE_MS = 30_000;

/**
 * Asks the system once which adapters it has, in a process of its own: the library asks some tools synchronously, and a driver
 * that starts cold would hold every heartbeat for seconds. @returns what stops it
 */
export function takeInventory(
  clock: Clock,
  start: StartInventory,
  done: (found: readonly InventoryGpu[]) => void,
): () => void {
  let child: ChildProcess | null;
  try {
    child = start();
  } catch {
    return () => {};
  }
  if (child === null) return () => {};
  const running = child;
  const end = () => {
    stop();
    running.kill('SIGKILL');
  };
  const stop = clock.after(PATIENCE_MS, end);
  running.once('message', (message) => {
    done(readInventory(message));
    end();
  });
  running.once('error', stop);
  running.once('exit', stop);
  return end;
}

export const startInventory: StartInventory = () => {
  // Electron's own program would open the application a second time.
  if (process.versions.electron !== undefined) return null;
  const source = import.meta.url.endsWith('.ts');
  const worker = fileURLToPath(new URL(source ? './inventory-worker.ts' : './gpu-inventory.js', import.meta.url));
  // An agent installed as one file has no worker; it lacks a few names, nothing else.
  if (!existsSync(worker)) return null;
  return fork(worker, [], {
    env: childEnvironment(process.env),
    execArgv: ['--disable-sigusr1', '--report-exclude-env'],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
};
