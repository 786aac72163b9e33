# SPDX-License-Identifier: Apache-2.0
# Loaded at the end of the suite's own Redis client, in the private copy. With BALLAST_SUITE_RESP3=1 every
# connection begins with HELLO 3, and RESP3 replies are handed to the tests in the shape RESP2 gives them,
# because the tests of this version state RESP2 shapes.

if {[info exists ::env(BALLAST_SUITE_RESP3)] && $::env(BALLAST_SUITE_RESP3) eq "1"} {
    # Commands sent whose reply has not been read, per client; the reply's shape depends on the command.
    array set ::redis::ballast_asked {}
    # Per client: "" while replies are shaped; else the test that chose a protocol itself, or "outside" for
    # a choice between tests. A choice made in a test ends with it.
    array set ::redis::ballast_chosen {}
    # Clients past their own handshake.
    array set ::redis::ballast_ready {}
    rename ::redis ::ballast_plain_client

    proc ::redis {{server 127.0.0.1} {port 6379} {defer 0} {tls 0} {tlsoptions {}} {readraw 0}} {
        set client [::ballast_plain_client $server $port 0 $tls $tlsoptions 0]
        set id $::redis::id
        set ::redis::ballast_chosen($id) {}
        # A server that wants a password refuses here; the test then authenticates, and stays in RESP2.
        catch {$client hello 3}
        set ::redis::ballast_asked($id) {}
        set ::redis::ballast_chosen($id) {}
        set ::redis::ballast_ready($id) 1
        $client deferred $defer
        $client readraw $readraw
        return $client
    }

    rename ::redis::__dispatch__raw__ ::redis::ballast_dispatch
    proc ::redis::__dispatch__raw__ {id method argv} {
        if {[info command ::redis::__method__$method] eq {}} {
            set name [string tolower $method]
            set inside [expr {[info exists ::cur_test] ? $::cur_test : ""}]
            if {![info exists ::redis::ballast_chosen($id)]} {set ::redis::ballast_chosen($id) outside}
            set chosen $::redis::ballast_chosen($id)
            if {$chosen ni {"" outside} && $chosen ne $inside &&
                !$::redis::deferred($id) && !$::redis::readraw($id)} {
                catch {::redis::ballast_dispatch $id hello 3}
                set ::redis::ballast_chosen($id) {}
                set ::redis::ballast_asked($id) {}
            }
            if {$name eq "hello" && [llength $argv] && [info exists ::redis::ballast_ready($id)]} {
                set ::redis::ballast_chosen($id) [expr {$inside eq "" ? "outside" : $inside}]
            }
            # These are answered by pushes, and a raw reader takes lines: neither is one reply.
            if {$name ni {subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe} &&
                !$::redis::readraw($id)} {
                lappend ::redis::ballast_asked($id) [list $name {*}$argv]
            }
        }
        ::redis::ballast_dispatch $id $method $argv
    }

    # A double as the server wrote it: RESP2 has the same digits in a string.
    proc ::redis::ballast_read_double {id fd} {
        set digits [::redis::redis_read_line $fd]
        if {$::redis::ballast_chosen($id) eq ""} {return $digits}
        return [expr {double($digits)}]
    }

    # Reads one reply as it is; shapes are changed by the caller, for whole replies only.
    proc ::redis::ballast_read {id fd kind_name} {
        upvar 1 $kind_name kind
        while {1} {
            set kind [::redis::redis_safe_read $fd 1]
            switch -exact -- $kind {
                _ {return [::redis::redis_read_null $fd]}
                : -
                ( -
                + {return [::redis::redis_read_line $fd]}
                , {return [::redis::ballast_read_double $id $fd]}
                # {return [::redis::redis_read_bool $fd]}
                = {return [::redis::redis_read_verbatim_str $fd]}
                - {return -code error [::redis::redis_read_line $fd]}
                $ {return [::redis::redis_bulk_read $fd]}
                > -
                ~ -
                * {return [::redis::ballast_read_list $id $fd 1 kind]}
                % {return [::redis::ballast_read_list $id $fd 2 kind]}
                | {
                    set ::redis::attributes($id) [::redis::redis_read_map $id $fd]
                    continue
                }
                default {
                    if {$kind eq {}} {
                        catch {close $fd}
                        set ::redis::fd($id) {}
                        return -code error "I/O error reading reply"
                    }
                    return -code error "Bad protocol, '$kind' as reply type byte"
                }
            }
        }
    }

    # width is 2 for maps. An error inside is raised after the whole list was read, as the suite's client does.
    # An array whose members are all arrays says so by the kind "pairs".
    proc ::redis::ballast_read_list {id fd width kind_name} {
        upvar 1 $kind_name kind
        set count [::redis::redis_read_line $fd]
        if {$count == -1} {return {}}
        set members {}
        set first_error {}
        set arrays [expr {$kind eq "*" && $count > 0}]
        for {set i 0} {$i < $count * $width} {incr i} {
            if {[catch {lappend members [::redis::ballast_read $id $fd member_kind]} error] &&
                $first_error eq {}} {
                set first_error $error
            }
            if {$member_kind ni {* pairs}} {set arrays 0}
        }
        if {$first_error ne {}} {return -code error $first_error}
        if {$arrays} {set kind pairs}
        return $members
    }

    # The RESP2 shape of a RESP3 reply to a command.
    proc ::redis::ballast_shape {asked kind reply} {
        set name [lindex $asked 0]
        set words [string tolower $asked]
        if {$kind eq "pairs"} {
            switch -exact -- $name {
                zrange - zrangebyscore - zrevrange - zrevrangebyscore - zunion - zinter - zdiff -
                zrandmember - zpopmin - zpopmax - hrandfield {
                    return [concat {*}$reply]
                }
            }
        }
        if {$kind eq "%" && $name in {xread xreadgroup}} {
            set streams {}
            foreach {stream entries} $reply {lappend streams [list $stream $entries]}
            return $streams
        }
        return $reply
    }

    proc ::redis::redis_read_reply {id fd} {
        if {$::redis::readraw($id)} {
            return [::redis::redis_read_line $fd]
        }
        set failed [catch {::redis::ballast_read $id $fd kind} reply]
        if {$kind eq ">"} {return -code $failed $reply}
        set asked [lindex $::redis::ballast_asked($id) 0]
        set ::redis::ballast_asked($id) [lrange $::redis::ballast_asked($id) 1 end]
        if {$failed} {return -code error $reply}
        if {$::redis::ballast_chosen($id) ne ""} {return $reply}
        return [::redis::ballast_shape $asked $kind $reply]
    }
}
