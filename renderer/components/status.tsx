import type { ReactElement, ReactNode } from 'react';

export type Tone = 'ok' | 'warn' | 'bad' | 'idle';
export const GLYPHS: Readonly<Record<Tone, string>> = { ok: '✓', warn: '!', bad: '✕', idle: '–' };

/** Icon, word and colour together; never colour alone. */
export function Status({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }): ReactElement {
  return (
    <span className={`status ${tone}`}>
      <span className="glyph" aria-hidden="true">
        {GLYPHS[tone]}
      </span>
      {children}
    </span>
  );
}

/** A sentence beside what it is about, with a coloured edge; `alert` speaks at once to a screen reader. */
export function Note(props: {
  readonly tone: Tone;
  readonly alert?: boolean;
  readonly children: ReactNode;
}): ReactElement {
  return (
    <div className={`note ${props.tone}`} role={props.alert ? 'alert' : undefined}>
      {props.children}
    </div>
  );
}
