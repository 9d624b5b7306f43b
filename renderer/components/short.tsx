import type { ReactElement } from 'react';

/** The beginning and the end of a long name, which tell the most; both sides of the cut in whole characters. */
export function shortened(text: string, most: number): string {
  const characters = [...text];
  if (characters.length <= most) return text;
  const tail = Math.ceil((most - 1) * 0.55);
  return `${characters.slice(0, most - 1 - tail).join('')}…${characters.slice(-tail).join('')}`;
}

/**
 * A name that may be long, with its middle left out; all of it is told on hover, on focus of the row around it, and to those who
 * listen.
 */
export function Short({ text, most }: { readonly text: string; readonly most: number }): ReactElement {
  const shown = shortened(text, most);
  if (shown === text) return <span>{text}</span>;
  return (
    <span className="shortened" data-whole={text}>
      <span aria-hidden="true">{shown}</span>
      <span className="visually-hidden">{text}</span>
    </span>
  );
}
