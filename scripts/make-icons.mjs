// Draws every icon from assets/icon.svg: run it after changing the drawing, and commit what it writes. Needs a Chromium (its
// path in CHROMIUM, else the usual places); nothing is fetched.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { chromium } from 'playwright-core';
import { icns, ico, png } from './icon-files.mjs';
import { root } from './stale.mjs';

const SIZES = [16, 24, 32, 48, 64, 128, 256, 512, 1024];
const WINDOWS = [16, 24, 32, 48, 64, 128, 256];
/** Up to here the margin around the plate is cut away: it would cost strokes their second pixel. */
const SMALL = 48;

const drawing = readFileSync(path.join(root, 'assets', 'icon.svg'), 'utf8');
const cropped = drawing.replace('viewBox="0 0 1024 1024"', 'viewBox="80 80 864 864"');
/** For the menu bar of macOS, which colours it itself: tracks alone, in black, filling the square. */
const template = drawing
  .replace('viewBox="0 0 1024 1024"', 'viewBox="152 152 720 720"')
  .replace(/<rect id="plate"[^>]*>/, '')
  .replaceAll(/stroke="#[0-9a-f]{6}"/g, 'stroke="#000000"');

const executablePath = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome'].find(
  (file) => file && existsSync(file),
);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] }); // it draws only our own file
const page = await browser.newPage();

/** @returns {Promise<import('./icon-files.mjs').Picture>} */
async function draw(svg, size) {
  const url = `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`;
  const base64 = await page.evaluate(
    async ([source, side]) => {
      const image = new Image(side, side);
      image.src = source;
      await image.decode();
      const canvas = new OffscreenCanvas(side, side);
      const context = canvas.getContext('2d');
      context.drawImage(image, 0, 0, side, side);
      const pixels = context.getImageData(0, 0, side, side).data;
      let text = '';
      for (let i = 0; i < pixels.length; i += 32_768) text += String.fromCharCode(...pixels.subarray(i, i + 32_768));
      return btoa(text);
    },
    [url, size],
  );
  return { size, rgba: Buffer.from(base64, 'base64') };
}

function write(name, content) {
  const file = path.join(root, 'assets', name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
}

const pictures = [];
for (const size of SIZES) pictures.push(await draw(size <= SMALL ? cropped : drawing, size));
for (const picture of pictures) write(`package/icons/${picture.size}x${picture.size}.png`, png(picture));
write('package/icon.ico', ico(pictures.filter(({ size }) => WINDOWS.includes(size))));
write('package/icon.icns', icns(pictures));
write('marks/window.png', png(pictures.find(({ size }) => size === 256)));
for (const [suffix, factor] of [
  ['', 1],
  ['@2x', 2],
]) {
  write(`marks/tray${suffix}.png`, png(await draw(cropped, 24 * factor)));
  write(`marks/trayTemplate${suffix}.png`, png(await draw(template, 18 * factor)));
}
await browser.close();
