// SIGUSR1 has Node open V8's inspector, and a heap snapshot has the keys. A listener of ours takes that signal away from Node, so
// it comes before anything is loaded; where Node knows --disable-sigusr1, the node starts this process with it as well.
process.on("SIGUSR1", () => undefined);
const { serveKeys } = await import("./serve-keys.ts");
await serveKeys();
process.exit(0);

export {};
