import { type PointerEvent, useRef, useState } from 'react';
import { MARGIN, type TimeSeriesProps } from './time-series.tsx';

interface Stretch {
  /** Both ends of what is being drawn, in the order they were drawn. */
  readonly drag: readonly [number, number] | null;
  readonly handlers: {
    readonly onPointerDown?: (event: PointerEvent<HTMLDivElement>) => void;
    readonly onPointerMove?: (event: PointerEvent<HTMLDivElement>) => void;
    readonly onPointerUp?: () => void;
    readonly onPointerCancel?: () => void;
  };
}

/** Shorter strokes are clicks. */
const LEAST_PX = 8;

/** A stretch of time drawn across the plot, whose left edge is `axisPx` from the chart's. */
export function useStretch(props: TimeSeriesProps, axisPx: number): Stretch {
  const [drag, setDrag] = useState<readonly [number, number] | null>(null);
  const start = useRef<{ readonly x: number; readonly atMs: number } | null>(null);
  const { onSelect, fromMs, toMs } = props;
  if (!onSelect) return { drag: null, handlers: {} };

  const momentAt = (event: PointerEvent<HTMLDivElement>): number => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left - axisPx) / Math.max(1, box.width - axisPx - MARGIN.right);
    return fromMs + Math.max(0, Math.min(1, share)) * (toMs - fromMs);
  };
  const end = () => {
    start.current = null;
    setDrag(null);
    if (drag) onSelect(Math.min(...drag), Math.max(...drag));
  };
  return {
    drag,
    handlers: {
      onPointerDown: (event) => {
        if (event.button === 0) start.current = { x: event.clientX, atMs: momentAt(event) };
      },
      onPointerMove: (event) => {
        if (!start.current || Math.abs(event.clientX - start.current.x) < LEAST_PX) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag([start.current.atMs, momentAt(event)]);
      },
      onPointerUp: end,
      onPointerCancel: () => {
        start.current = null;
        setDrag(null);
      },
    },
  };
}
