/**
 * Copies by the page's own command rather than the asynchronous clipboard: the desktop's window denies every permission, that one
 * included. @returns whether the browser took it; needs a user's gesture.
 */
export function copyText(text: string): boolean {
  const area = document.createElement('textarea');
  // Something must be selected; the text itself is handed over by the event, since a long log laid out as text takes half a minute.
  area.value = ' ';
  area.className = 'visually-hidden';
  area.setAttribute('aria-hidden', 'true');
  // Inside an open dialog everything outside is inert and cannot be selected.
  const host = document.querySelector('dialog[open]') ?? document.body;
  const before = document.activeElement;
  host.append(area);
  area.select();
  const hand = (event: ClipboardEvent) => {
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
  };
  area.addEventListener('copy', hand, { once: true });
  const taken = document.execCommand('copy');
  area.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return taken;
}

/** Offers a file for saving. A data address, since the desktop's window loads nothing else of its own making. */
export function saveFile(file: {
  readonly fileName: string;
  readonly mediaType: string;
  readonly content: string;
}): void {
  const link = document.createElement('a');
  link.href = `data:${file.mediaType};charset=utf-8,${encodeURIComponent(file.content)}`;
  link.download = file.fileName;
  link.click();
}
