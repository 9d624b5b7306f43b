/** Square; 4 bytes a pixel, rows from the top, alpha not premultiplied. */
export interface Picture {
  readonly size: number;
  readonly rgba: Buffer;
}
export function png(picture: Picture): Buffer;
/** @param pictures at most 256 pixels */
export function ico(pictures: readonly Picture[]): Buffer;
/** @throws Error where one of Apple's sizes is missing */
export function icns(pictures: readonly Picture[]): Buffer;
