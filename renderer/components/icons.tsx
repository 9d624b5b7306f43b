import type { ReactElement } from 'react';
import type { PageId } from '../../preload/contract.ts';

/** Strokes of 16 x 16 icons, one per page; they accompany words and say nothing by themselves. */
const PAGE_PATHS: Readonly<Record<PageId, string>> = {
  overview: 'M2 13.5h12M3 11l3-4 3 2.5L13.5 4',
  fleet: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
  roles: 'M3 4h4l6 8M3 12h4l6-8M11 4h2v2M11 12h2v-2',
  gate: 'M8 1.8l5.2 2v4c0 3-2.2 5.4-5.2 6.4-3-1-5.2-3.4-5.2-6.4v-4zM5.6 8l1.8 1.8L10.6 6.4',
  budget: 'M2.2 11.5a6 6 0 1 1 11.6 0M8 10.5l3-4',
  requests: 'M2 4.5h9M2 8h12M2 11.5h7M11 2.5l2.5 2L11 6.5',
  keys: 'M10.2 2.4a3.4 3.4 0 1 1-3 5L3 11.6V14h2.4v-1.8h1.8v-1.8L8.4 9',
  events: 'M2.5 3.5h.01M5.5 3.5h8M2.5 8h.01M5.5 8h8M2.5 12.5h.01M5.5 12.5h8',
  settings: 'M2 5h6M12 5h2M8 5a2 2 0 1 0 4 0 2 2 0 1 0-4 0M2 11h2M8 11h6M4 11a2 2 0 1 0 4 0 2 2 0 1 0-4 0',
};
const PATHS = {
  close: 'M4 4l8 8M12 4l-8 8',
  copy: 'M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3',
  check: 'M3 8.5l3.2 3.2L13 5',
} as const;

function Stroke({ d }: { readonly d: string }): ReactElement {
  return (
    <svg
      width="16"
      height="16"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={d} />
    </svg>
  );
}

export const PageIcon = ({ page }: { readonly page: PageId }) => <Stroke d={PAGE_PATHS[page]} />;
export const Icon = ({ name }: { readonly name: keyof typeof PATHS }) => <Stroke d={PATHS[name]} />;
