/** What runs inside the measured page, before its own scripts. */
export interface PageProbe {
  /** Wall clock in ms at which the frame after each WebSocket message was painted, in their order. */
  readonly painted: number[];
  /** Milliseconds of tasks longer than 50 ms. */
  longTaskMs: number;
  longTasks: number;
}

export interface Probed {
  readonly switchyardProbe: PageProbe;
}

export function installProbe(): void {
  const probe: PageProbe = { painted: [], longTaskMs: 0, longTasks: 0 };
  Object.assign(globalThis, { switchyardProbe: probe });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      probe.longTaskMs += entry.duration;
      probe.longTasks += 1;
    }
  }).observe({ type: 'longtask', buffered: true });
  const Native = globalThis.WebSocket;
  let messages = 0;
  class Watched extends Native {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      this.addEventListener('message', () => {
        const index = messages++;
        // A task queued inside the frame runs when the frame has been handed over.
        requestAnimationFrame(() => {
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = () => {
            probe.painted[index] = performance.timeOrigin + performance.now();
            // A channel that is never closed would stay, and be counted as the console's memory.
            port1.close();
          };
          port2.postMessage(null);
        });
      });
    }
  }
  Object.assign(globalThis, { WebSocket: Watched });
}

/** Scrolls an element by `stepPx` in each frame. @returns milliseconds between frames */
export function scrollFrames(options: {
  readonly selector: string;
  readonly stepPx: number;
  readonly frames: number;
}): Promise<number[]> {
  return new Promise((resolve) => {
    const element = document.querySelector(options.selector);
    const gaps: number[] = [];
    let before = 0;
    const step = (now: number) => {
      if (before > 0) gaps.push(now - before);
      before = now;
      if (gaps.length >= options.frames || !element) {
        resolve(gaps);
        return;
      }
      element.scrollTop += options.stepPx;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
}
