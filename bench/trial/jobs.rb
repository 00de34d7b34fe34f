# A job runner as Sidekiq is one: THREADS threads take N jobs, each parses a document, changes it, writes it again and keeps a part
# of some results. It announces operations and latencies to memtide, and holds at its end.
require 'json'

jobs, threads = (ENV['N'] || 6000).to_i, (ENV['THREADS'] || 25).to_i
memtide = ENV['MEMTIDE_FD'] && IO.for_fd(ENV['MEMTIDE_FD'].to_i, 'r+', autoclose: false)
memtide&.sync = true
now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
document = ->(seed) {
  random = Random.new(seed)
  JSON.generate(Array.new(30 + seed % 60) { |i|
    { id: i, text: ('a'.ord + random.rand(26)).chr * (20 + random.rand(700)), tags: Array.new(random.rand(8)) { |t| "tag#{t}" } }
  })
}
queue = Queue.new
jobs.times { |job| queue << job }
kept, done, lock = Array.new(3000), 0, Mutex.new
workers = Array.new(threads) do
  Thread.new do
    loop do
      job = (queue.pop(true) rescue break)
      begun = now.call
      rows = JSON.parse(document.call(job % 997))
      rows.each { |row| row['text'] = row['text'].upcase.reverse; row['key'] = "job:#{job}:#{row['id']}" }
      groups = rows.group_by { |row| row['text'].size % 7 }
      text = JSON.generate(groups)
      kept[(job * 7919) % 3000] = job % 4 == 0 ? text[0, 200 + (job * 31) % 20_000] : { key: rows.first['key'], size: groups.size }
      took = now.call - begun
      lock.synchronize do
        done += 1
        memtide&.puts "latency_ms #{(took * 1e3).round(3)}"
        memtide&.puts 'phase steady' if done == jobs / 5
        memtide&.puts "ops #{done}" if done % 50 == 0
      end
    end
  end
end
workers.each(&:join)
if memtide
  memtide.puts "ops #{done}"
  memtide.puts 'hold'
  memtide.gets
end
