use timeline::{KillNotice, Messenger, NoticeKind};
use units::Bytes;

use crate::testing::{paste, survives};

fn notices(text: &str) -> Vec<KillNotice> {
    let timeline = paste(text).timeline;
    timeline.notices().map(|one| one.notice.clone()).collect()
}

fn only(text: &str) -> KillNotice {
    let mut all = notices(text);
    assert_eq!(all.len(), 1, "{text}: {all:?}");
    all.remove(0)
}

#[test]
fn killers_name_their_victim_and_threshold() {
    let oomd = only(
        "Nov 21 23:58:47 box systemd-oomd[612]: Killed \
         /user.slice/user-1000.slice/app.slice/app-browser.scope due to memory pressure for \
         /user.slice/user-1000.slice being 62.11% > 50.00% for > 20s with reclaim activity",
    );
    assert_eq!((oomd.messenger, oomd.kind), (Messenger::Oomd, NoticeKind::Kill));
    assert_eq!(oomd.target, "app-browser.scope");
    assert!(oomd.reason.starts_with("memory pressure for"), "{oomd:?}");
    let early = only(
        "low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%\nsending SIGTERM to process 812 uid 1000 \"java\": badness 900, VmRSS 2891 MiB\nsending SIGKILL to process 812 uid 1000 \"java\": badness 900, VmRSS 2891 MiB\n",
    );
    assert_eq!((early.process.as_str(), early.pid), ("java", Some(812)));
    assert_eq!(early.used, Some(Bytes::from_mib(2891)));
    assert_eq!(early.reason, "SIGTERM limits: mem 10.00%, swap 10.00%");
    let alone = only("low memory! at or below SIGKILL limits: mem 5 %, swap 5 %\n");
    assert_eq!(alone.subject(), "");
    let talos = only(
        r#"user: warning: [2026-01-14T19:07:31.9Z]: [talos] Sending SIGKILL to cgroup {"controller": "runtime.OOMController", "cgroup": "/sys/fs/cgroup/kubepods/burstable/pod77"}"#,
    );
    assert_eq!(talos.target, "/kubepods/burstable/pod77");
    let pm2 = only(
        "2021-11-21T23:58:47: PM2 log: [PM2][WORKER] Process 2 restarted because it exceeds \
         --max-memory-restart value (current_memory=5274296320 max_memory_limit=5242880000 \
         [octets])",
    );
    assert_eq!((pm2.messenger, pm2.process.as_str()), (Messenger::Pm2, "process 2"));
    assert_eq!(pm2.limit, Some(Bytes::from_mib(5000)));
}

#[test]
fn the_kubelet_says_what_went_over_its_request() {
    let evicted = only(
        "NoticeMessage: The node was low on resource: memory. Threshold quantity: 100Mi, \
         available: 84Mi. Container web was using 166088Ki, which exceeds its request of 10Mi.",
    );
    assert_eq!((evicted.kind, evicted.target.as_str()), (NoticeKind::Eviction, "web"));
    assert_eq!(evicted.used, Some(Bytes::from_kib(166_088)));
    assert_eq!(evicted.limit, Some(Bytes::from_mib(10)));
    assert_eq!(evicted.reason, "threshold 100Mi, available: 84Mi");
    let victim = only(
        " Warning  CgroupOOM  28s  kubelet  Cgroup OOM encountered, victim process: stress, pid: 470877",
    );
    assert_eq!(
        (victim.kind, victim.subject().as_str()),
        (NoticeKind::Container, "stress (470877)")
    );
    let node = only(
        " Warning  SystemOOM  6m  kubelet  System OOM encountered, victim process: go-oom, pid: 3431",
    );
    assert_eq!(node.kind, NoticeKind::Node);
    let pressure = only(
        "  MemoryPressure   True    Thu, 14 Sep 2026   KubeletHasInsufficientMemory   kubelet has insufficient memory available",
    );
    assert!(!pressure.ended_something());
}

#[test]
fn a_rule_that_alerts_on_a_kill_is_none() {
    let rule = "  - alert: Killed\n    expr: kube_pod_container_status_last_terminated_reason{reason=\"OOMKilled\"} == 1\n";
    assert!(notices(rule).is_empty());
}

#[test]
fn the_state_of_a_container_is_found_in_all_its_forms() {
    for (text, target) in [
        (
            "  web:\n    State:          Running\n    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n",
            "web",
        ),
        (
            "\"lastState\": {\n \"terminated\": {\n  \"exitCode\": 137,\n  \"reason\": \"OOMKilled\"\n }\n},\n\"name\": \"web\",\n",
            "web",
        ),
        ("lastState:\n  terminated:\n    exitCode: 137\n    reason: OOMKilled\nname: web\n", "web"),
        ("LastState: map[terminated:map[exitCode:137 reason:OOM Killed startedAt:2015]]", ""),
        (
            "NAME    READY   STATUS      RESTARTS      AGE\nweb-0   0/1     OOMKilled   5 (2m ago)   10m\n",
            "web-0",
        ),
        ("shop   web-0   0/1     OOMKilled   5   10m\n", "web-0"),
        (
            "    \"State\": {\n      \"OOMKilled\": true,\n      \"ExitCode\": 137\n    },\n    \"Name\": \"/web\",\n",
            "web",
        ),
        ("kube_pod_container_status_terminated_reason{reason=\"OOMKilled\"}==1", ""),
        (
            "2026-11-21T23:58:47.011072877Z container oom 3ae83a77c1be3ae83a77c1be (image=web:1, \
             name=web)",
            "web",
        ),
        ("web-0   0/1     Init:OOMKilled   5   10m\n", "web-0"),
        ("  message: OOMKilled (exit code 137)\n", ""),
        ("$ docker inspect -f '{{.State.OOMKilled}}' web\ntrue\n", "web"),
        ("container_oom_events_total{container=\"web\",pod=\"web-0\"} 3\n", "web"),
        (
            "Memory limit of 512 MiB exceeded with 523 MiB used. Consider increasing the memory limit\n",
            "",
        ),
        ("StoppedReason: OutOfMemoryError: Container killed due to memory usage\n", ""),
        (
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=123.batch. Some of the step \
             tasks have been OOM Killed.",
            "step 123.batch",
        ),
    ] {
        let notice = only(text);
        assert_eq!(
            (notice.kind, notice.target.as_str()),
            (NoticeKind::Container, target),
            "{text}"
        );
    }
    let limited = only(
        "      Reason:       OOMKilled\n      Exit Code:    137\n    Limits:\n      cpu:     1\n      memory:  100Mi\n",
    );
    assert_eq!(limited.limit, Some(Bytes::from_mib(100)));
}

#[test]
fn the_name_of_a_container_may_stand_before_its_state_in_the_object() {
    let notice = only(
        "{\n \"name\": \"web\",\n \"lastState\": {\"terminated\": {\"exitCode\": 137, \"reason\": \"OOMKilled\", \"finishedAt\": \"2020-11-12T13:08:33Z\"}},\n \"ready\": true\n}\n",
    );
    assert_eq!((notice.kind, notice.target.as_str()), (NoticeKind::Container, "web"));
}

#[test]
fn batch_systems_and_android_name_what_they_killed() {
    let job =
        only("slurmstepd: error: Job 123 exceeded memory limit (4194304 > 2097152), being killed");
    assert_eq!(
        (job.target.as_str(), job.used, job.limit),
        ("Job 123", Some(Bytes::from_gib(4)), Some(Bytes::from_gib(2)))
    );
    let lsf = only("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.");
    assert_eq!(lsf.kind, NoticeKind::Kill);
    let android = only(
        "lowmemorykiller: Killing 'com.app' (1234), adj 900, to free 53532kB on behalf of \
         'kswapd0' (72) because cache 80000kB is below limit 90000kB",
    );
    assert_eq!(android.subject(), "com.app (1234)");
    assert!(android.reason.starts_with("cache 80000kB"), "{android:?}");
}

#[test]
fn units_are_named() {
    for (text, target) in [
        (
            "● app.service - An app\n   Loaded: loaded\n   Active: failed (Result: oom-kill) since Mon\n",
            "app.service",
        ),
        (
            "Nov 21 23:58:47 box systemd[1]: app.service: Failed with result 'oom-kill'.",
            "app.service",
        ),
        ("app.service: A process of this unit has been killed by the OOM killer.", "app.service"),
        ("   Active: failed (Result: oom-kill) since Mon\n", ""),
    ] {
        let notice = only(text);
        assert_eq!((notice.kind, notice.target.as_str()), (NoticeKind::Unit, target), "{text}");
    }
}

#[test]
fn what_only_looks_like_a_kill_is_none() {
    for text in [
        "\"OOMKilled\": false,\n\"ExitCode\": 137,\n",
        "  MemoryPressure   False   KubeletHasSufficientMemory\n",
        "kube_pod_container_status_terminated_reason{reason=\"OOMKilled\"} 0",
        "kube_pod_container_status_terminated_reason{reason=\"OOMKilled\"} > 0",
        "why does my pod say OOMKilled?",
        "grep -c OOMKilled pods.txt",
        "warn(\"sending SIGTERM to process %d uid %d\")",
        "\"name\": \"oomkilled-85d9cf68b6\"",
        "The node was low on resource: ephemeral-storage. Container web was using 10Gi",
        "OOMPolicy=kill",
        "Exit Code:    137",
        "3ae83a77c1be web:1 \"/run\" 2 hours ago Exited (137) 5 minutes ago web",
        "app.service: Main process exited, code=killed, status=9/KILL",
        "container_oom_events_total{container=\"web\"} 0",
        "$ docker inspect -f '{{.State.OOMKilled}}' web\nfalse\n",
        "-bash: fork: Cannot allocate memory",
    ] {
        assert_eq!(notices(text), [], "{text}");
    }
}

#[test]
fn a_kill_that_several_programs_report_is_one() {
    let text = "box systemd-oomd[36]: Killed /a.slice/app.service due to memory pressure for /a.slice being 64.15% > 1.00%\nbox systemd[1]: app.service: systemd-oomd killed 2 process(es) in this unit.\nbox systemd[1]: app.service: Failed with result 'oom-kill'.\n";
    assert_eq!(only(text).messenger, Messenger::Oomd);
}

#[test]
fn cut_and_mixed_messages_are_survived() {
    let parts = [
        "sending SIGTERM to process 812 uid 1000 \"é",
        "The node was low on resource: memory. Container ",
        " was using 99999999999999999999Ki, its request of ",
        "Killed / due to memory ",
        "  Reason: \"OOMKilled",
        "Limits:\nmemory: 1e9\n\"name\": \"",
        "container oom 3ae83a77c1be (name=",
        "MemoryPressure ",
        ": Failed with result 'oom-kill'",
    ];
    for one in parts {
        for other in parts {
            survives(&format!("{one}{other}\n{other}\n{one}"));
        }
    }
}
