import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { z } from 'zod';

export interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const State = z.object({
  x: z.number().int(),
  y: z.number().int(),
  width: z.number().int().min(1),
  height: z.number().int().min(1),
  maximized: z.boolean(),
});
export type WindowState = z.infer<typeof State>;

export const SMALLEST = { width: 640, height: 480 } as const;
const USUAL = { width: 1280, height: 800 } as const;
/** So much of the title bar must be on a screen for a window to be moved back. */
const VISIBLE_PX = 64;

/**
 * Where the window opens: as it was left, if enough of it is on a screen that is still there; else in the middle of the first.
 */
export function placeWindow(saved: WindowState | null, screens: readonly Rectangle[]): WindowState {
  const [first] = screens;
  if (saved && screens.some((screen) => reaches(saved, screen))) {
    return {
      ...saved,
      width: Math.max(SMALLEST.width, saved.width),
      height: Math.max(SMALLEST.height, saved.height),
    };
  }
  const screen = first ?? { x: 0, y: 0, ...USUAL };
  const width = Math.min(USUAL.width, screen.width);
  const height = Math.min(USUAL.height, screen.height);
  return {
    x: screen.x + Math.round((screen.width - width) / 2),
    y: screen.y + Math.round((screen.height - height) / 2),
    width,
    height,
    maximized: false,
  };
}

function reaches(window: Rectangle, screen: Rectangle): boolean {
  const across = Math.min(window.x + window.width, screen.x + screen.width) - Math.max(window.x, screen.x);
  const titleBarInside = window.y >= screen.y - 8 && window.y + 32 <= screen.y + screen.height;
  return across >= VISIBLE_PX && titleBarInside;
}

/** Null where nothing usable was saved. */
export function readWindowState(file: string): WindowState | null {
  try {
    const parsed = State.safeParse(JSON.parse(readFileSync(file, 'utf8')));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

/** Whole or not at all; a failure costs the place of a window and nothing more. */
export async function writeWindowState(file: string, state: WindowState): Promise<void> {
  try {
    await writeFile(`${file}.new`, `${JSON.stringify(state)}\n`, { mode: 0o600 });
    await rename(`${file}.new`, file);
  } catch {
    // The next start opens in the middle of the screen.
  }
}
