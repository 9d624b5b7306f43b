import os from 'node:os';
import type { Clock } from '../../main/domain/time.ts';
import type { GpuReport } from '../wire/control.ts';
import { AmdSource } from './amd.ts';
import { AppleSource } from './apple.ts';
import { type InventoryGpu, type StartInventory, startInventory, takeInventory } from './inventory.ts';
import { NvidiaSource } from './nvidia.ts';
import type { GpuSampler } from './sampler.ts';
import type { GpuReading, GpuSource } from './source.ts';
import { WindowsSource } from './windows.ts';

/** The wire takes no more. */
const MAX_GPUS = 64;
/** Names can wait; a start has better things to do. */
const INVENTORY_AFTER_MS = 2000;

export interface MachineGpusOptions {
  readonly clock: Clock;
  readonly sources: readonly GpuSource[];
  readonly startInventory: StartInventory;
}

/** The sources that fit this system. NVIDIA first: where another source sees its cards too, nvidia-smi knows more of them. */
export function machineSources(clock: Clock, environment: NodeJS.ProcessEnv): readonly GpuSource[] {
  switch (process.platform) {
    case 'darwin':
      return [new AppleSource({ clock, environment, memoryBytes: os.totalmem() })];
    case 'win32':
      return [new NvidiaSource({ clock, environment }), new WindowsSource({ clock, environment })];
    default:
      return [new NvidiaSource({ clock, environment }), new AmdSource({ clock })];
  }
}

/** The sampler of this machine. */
export function machineGpus(clock: Clock, environment: NodeJS.ProcessEnv): GpuSampler {
  return new MachineGpus({ clock, sources: machineSources(clock, environment), startInventory });
}

/** All GPUs of a machine, from whatever sources see them. */
export class MachineGpus implements GpuSampler {
  readonly #options: MachineGpusOptions;
  #inventory: readonly InventoryGpu[] = [];
  #stopInventory: () => void = () => {};

  constructor(options: MachineGpusOptions) {
    this.#options = options;
  }

  start(): void {
    const { clock, sources, startInventory: begin } = this.#options;
    for (const source of sources) source.start();
    this.#stopInventory = clock.after(INVENTORY_AFTER_MS, () => {
      this.#stopInventory = takeInventory(clock, begin, (found) => {
        this.#inventory = found;
      });
    });
  }

  stop(): void {
    this.#stopInventory();
    for (const source of this.#options.sources) source.stop();
  }

  latest(): readonly GpuReport[] {
    return joinReadings(
      this.#options.sources.map((source) => source.latest()),
      this.#inventory,
    );
  }
}

/**
 * One list of what the sources read. A maker's cards are taken from the first source that sees any of them; what only the
 * inventory knows is shown with unknown values. Indexes are the tool's own where it has some, the others follow.
 */
export function joinReadings(
  sources: readonly (readonly GpuReading[])[],
  inventory: readonly InventoryGpu[],
): readonly GpuReport[] {
  const seen = new Set<string>();
  const readings: GpuReading[] = [];
  for (const source of sources) {
    const fresh = source.filter(({ vendor }) => !seen.has(vendor));
    for (const { vendor } of source) if (vendor !== 'other') seen.add(vendor);
    readings.push(...fresh);
  }
  // A source for everything (Apple, Windows) has said what there is.
  const complete = readings.some(({ vendor }) => vendor === 'apple' || vendor === 'other');
  const unread = complete ? [] : inventory.filter(({ vendor }) => !seen.has(vendor)).map(unknown);
  const numbers = readings.flatMap(({ number }) => (number === null ? [] : [number]));
  let free = Math.max(-1, ...numbers) + 1;
  return [...readings, ...unread].slice(0, MAX_GPUS).map((reading) => ({
    index: reading.number ?? free++,
    uuid: reading.uuid,
    name: reading.name ?? nameIn(inventory, reading),
    utilisationPercent: reading.utilisationPercent,
    memoryUsedBytes: reading.memoryUsedBytes,
    memoryTotalBytes: reading.memoryTotalBytes,
    temperatureC: reading.temperatureC,
    powerW: reading.powerW,
  }));
}

const unknown = ({ vendor, name, pci }: InventoryGpu): GpuReading => ({
  vendor,
  name,
  pci,
  number: null,
  uuid: null,
  utilisationPercent: null,
  memoryUsedBytes: null,
  memoryTotalBytes: null,
  temperatureC: null,
  powerW: null,
});

function nameIn(inventory: readonly InventoryGpu[], { pci, vendor }: GpuReading): string | null {
  return inventory.find((each) => each.vendor === vendor && pci !== null && each.pci === pci)?.name ?? null;
}
