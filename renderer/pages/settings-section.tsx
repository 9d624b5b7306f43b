import type { ReactElement, ReactNode } from 'react';

/** One group of settings under its heading. */
export function Section({ title, children }: { readonly title: string; readonly children: ReactNode }): ReactElement {
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <div className="form">{children}</div>
    </section>
  );
}
