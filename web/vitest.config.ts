import { defineConfig } from "vitest/config";

export default defineConfig({
  // By number: a minimal machine may not know the name localhost.
  server: { host: "127.0.0.1" },
  test: {
    setupFiles: ["./test/unit/setup.ts"],
    // A browser on a busy machine.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
