# A job runner: 25 threads make and parse JSON of random sizes and keep some results. Each thread's mallocs go to its own arena.
require "json"

THREADS = 25
JOBS = 250 # for each thread, then it waits
KEPT = 4  # results of each thread

def document(random, bytes)
  rows = []
  while bytes.positive?
    text = random.bytes(8 + random.rand(200)).unpack1("H*")
    rows << { "id" => random.rand(1 << 40), "name" => text, "tags" => [text[0, 40], text[-40, 40]] }
    bytes -= 2 * text.size
  end
  rows
end

def job(random, kept)
  # Each power of two from 1 KiB to 256 KiB is as likely as the next one.
  parsed = JSON.parse(JSON.generate(document(random, 1024 << random.rand(9))))
  kept[random.rand(KEPT)] = parsed if random.rand(5).zero?
end

finished = Queue.new
threads = Array.new(THREADS) do |i|
  Thread.new do
    random = Random.new(i)
    kept = Array.new(KEPT)
    JOBS.times { job(random, kept) }
    finished << i
    loop { ARGV.include?("--load") ? job(random, kept) : sleep }
  end
end
THREADS.times { finished.pop }
$stdout.puts "ready"
$stdout.flush
threads.each(&:join)
