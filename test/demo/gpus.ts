import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface Card {
  readonly name: string;
  readonly totalMiB: number;
  /** Memory that its models take. */
  readonly usedMiB: number;
  readonly mostW: number;
}

/**
 * Cards that a machine only claims to have: a program called `nvidia-smi` in a folder of its own, which answers in that tool's form
 * with what `show` last told it. An agent reads no other source.
 */
export class ClaimedCards {
  readonly folder: string;
  readonly #cards: readonly Card[];

  constructor(folder: string, cards: readonly Card[]) {
    this.folder = folder;
    this.#cards = cards;
    mkdirSync(folder, { recursive: true });
    this.show(0);
    const tool = path.join(folder, 'nvidia-smi');
    // It ends with the agent that started it: nobody reads its output any more.
    writeFileSync(tool, `#!/bin/sh\nwhile cat '${this.#file}' 2>/dev/null; do sleep 2; done\n`);
    chmodSync(tool, 0o755);
  }

  /** @param busy share of the machine's slots that work, 0 to 1 */
  show(busy: number): void {
    const lines = this.#cards.map(({ name, totalMiB, usedMiB, mostW }, index) => {
      // The second card of a pair carries a little less, as it does.
      const load = Math.round(97 * busy * (index === 0 ? 1 : 0.88));
      const fields = [
        index,
        `GPU-00000000-0000-0000-0000-00000000000${index}`,
        `00000000:0${index + 1}:00.0`,
        name,
        load,
        usedMiB + Math.round(0.04 * totalMiB * busy),
        totalMiB,
        34 + Math.round(0.4 * load),
        (0.06 * mostW + (0.84 * mostW * load) / 100).toFixed(2),
      ];
      return fields.join(', ');
    });
    // Whole or not at all: the tool may read at any moment.
    writeFileSync(`${this.#file}.new`, `${lines.join('\n')}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }

  get #file(): string {
    return path.join(this.folder, 'cards.csv');
  }
}
