import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // A browser on a busy machine.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
