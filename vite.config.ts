import path from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// The page is served under a policy that allows only its own files: nothing is inlined, and the preload polyfill (an inline
// module in spirit) is left out. Paths are relative because the same files live at app://bundle/ and at /console/.
export default defineConfig({
  root: path.join(import.meta.dirname, 'renderer'),
  base: './',
  plugins: [react()],
  build: {
    outDir: path.join(import.meta.dirname, 'out/renderer'),
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'chrome140',
    sourcemap: false,
    chunkSizeWarningLimit: 1200,
  },
});
