// 30 MB on V8's heap in objects, 20 MB in buffers, which V8 takes by malloc.
const piece = (i) => ({ id: i, name: `name ${i} `.repeat(8), tags: [i, i + 1, `tag ${i}`] });
const kept = Array.from({ length: 100_000 }, (_, i) => piece(i));
const buffers = Array.from({ length: 1250 }, (_, i) => Buffer.alloc(16 * 1024, i));
console.log("ready");
let i = 0;
setInterval(() => {
  if (!process.argv.includes("--load")) return;
  for (let n = 0; n < 10_000; n++, i++) kept[i % kept.length] = piece(i);
  buffers[i % buffers.length] = Buffer.alloc(16 * 1024, i);
}, 10);
