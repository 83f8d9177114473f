import { defineConfig } from "vitest/config";

/** `npm run trial`: an afternoon in production, on its own. It takes minutes, and is no part of `npm test`. */
export default defineConfig({
  test: {
    include: ["test/production/**/*.test.ts"],
    testTimeout: 900_000,
    hookTimeout: 300_000,
    bail: 1, // each part begins where the one before has left the site
  },
});
